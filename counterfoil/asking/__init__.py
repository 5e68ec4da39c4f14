"""Questions whose answers are the documents of `counterfoil.answers`: to an index of one's own, or to an API."""

from collections.abc import Iterator
from contextlib import contextmanager

from counterfoil.asking.port import Answers, Draw, Rows, SessionsOf
from indexer.settings import Settings

__all__ = ["Answers", "Draw", "Rows", "SessionsOf", "open_answers"]


@contextmanager
def open_answers(settings: Settings) -> Iterator[Answers]:
    """Give who answers: the API that the settings name, else their index. Nothing is asked or opened yet."""
    if not settings.api:
        from counterfoil.asking.own import OwnIndex

        yield OwnIndex(settings)
        return
    from counterfoil.asking.remote import MAX_BYTES, RemoteIndex
    from indexer.http import BoundedHttp

    with BoundedHttp(seconds=settings.request_seconds, max_bytes=MAX_BYTES) as http:
        yield RemoteIndex(http, settings.api)
