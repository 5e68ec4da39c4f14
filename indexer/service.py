"""The commands of the index as plain functions: what `counterfoil index` calls. Each returns a frozen value."""

import threading
from dataclasses import dataclass
from pathlib import Path

from indexer import query, sync
from indexer.chain import parse_quantity
from indexer.deployment import load_deployment
from indexer.errors import RetryableError, UnknownBlockError
from indexer.rpc import HttpRpc
from indexer.settings import Settings
from indexer.store.compare import compare
from indexer.store.database import database_sentences, open_store
from indexer.store.writer import open_writer
from indexer.sync import OnRetry, Progress, SyncOptions, SyncResult
from indexer.views import AsOf, Status


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """How far the index is; `head` is None where the node does not answer, `as_of` and `status` while it is empty."""

    database: str
    as_of: AsOf | None
    status: Status | None
    head: int | None


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """What a rebuild went over, and the digest that came out."""

    blocks: int
    digest: str
    quarantined: int


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """The blocks that both indexes hold, and the first one after which they differ (None: they agree)."""

    first_block: int
    last_block: int
    differs_at: int | None


def open_rpc(settings: Settings) -> HttpRpc:
    """Make the client of the node that the settings name."""
    return HttpRpc(settings.rpc_url, seconds=settings.request_seconds, max_bytes=settings.max_response_bytes)


def sync_options(settings: Settings) -> SyncOptions:
    """Take the loop's limits from the settings."""
    return SyncOptions(
        max_range=settings.max_range_blocks, poll_seconds=settings.poll_seconds, thorough=settings.thorough
    )


def index_run(
    settings: Settings,
    follow: bool = False,
    progress: Progress | None = None,
    *,
    stop: threading.Event | None = None,
    on_retry: OnRetry | None = None,
) -> SyncResult:
    """Catch up with the chain, and go on following it until `stop` where asked to.

    Raises UserErrors; without `follow` also the last RetryableError of a node that does not recover.
    """
    deployment = load_deployment(settings.deployment_path())
    options = sync_options(settings)
    with (
        open_writer(settings.database_url(), deployment) as writer,
        database_sentences(writer.store.label),
        open_rpc(settings) as rpc,
    ):
        if follow:
            return sync.follow(
                writer, rpc, stop=stop or threading.Event(), options=options, progress=progress, on_retry=on_retry
            )
        return sync.run_once(writer, rpc, options=options, progress=progress, on_retry=on_retry, stop=stop)


def index_status(settings: Settings) -> IndexStatus:
    """Say how far the index is, and how far the chain is where the node answers."""
    with open_store(settings.database_url()) as store, database_sentences(store.label):
        try:
            answer = query.status(store)
        except UnknownBlockError:
            return IndexStatus(store.label, None, None, _head(settings))
        return IndexStatus(store.label, answer.as_of, answer.value, _head(settings))


def index_rebuild(settings: Settings) -> RebuildResult:
    """Make the projections and digests again from the raw logs, without the chain."""
    open_store(settings.database_url()).close()  # a missing index is an error, not a new one
    with open_writer(settings.database_url(), load_deployment(settings.deployment_path())) as writer:
        blocks = writer.rebuild()
        if not blocks:
            raise UnknownBlockError(
                f"The index at {writer.store.label} is empty: fill it with `counterfoil index run`."
            )
        status = query.status(writer.store).value
        return RebuildResult(blocks, status.digest, status.quarantined)


def index_verify(settings: Settings, other_path: str | Path) -> VerifyResult:
    """Compare this index with another of the same deployment, block by block, by the rows of both."""
    with open_store(settings.database_url()) as ours, open_store(other_path) as theirs, database_sentences(ours.label):
        return VerifyResult(*compare(ours, theirs))


def _head(settings: Settings) -> int | None:
    with open_rpc(settings) as rpc:
        try:
            return parse_quantity(rpc.call("eth_blockNumber", []))
        except RetryableError:
            return None


__all__ = [
    "IndexStatus", "RebuildResult", "VerifyResult", "index_rebuild", "index_run", "index_status",
    "index_verify", "open_rpc", "sync_options",
]  # fmt: skip
