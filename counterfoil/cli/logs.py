"""The log of a running index on stderr: sentences for people, or one JSON object a line, from the loop's notices."""

import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Literal

import click
import structlog
from structlog.contextvars import bind_contextvars, clear_contextvars, merge_contextvars, unbind_contextvars
from structlog.typing import Processor

from counterfoil.texts import printable
from indexer.errors import IndexerError
from indexer.notices import (
    Listening,
    Notice,
    ProviderChanged,
    Reading,
    Replaced,
    Retried,
    Stepped,
    Waiting,
    Weakened,
    Writing,
)

LogFormat = Literal["text", "json"]


def configure(log_format: LogFormat) -> None:
    """Choose how events are written. Each has a name, a `message` for people, and fields for machines."""
    clear_contextvars()
    as_json: list[Processor] = [
        merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _first_things_first,
        structlog.processors.JSONRenderer(),
    ]
    structlog.configure(
        processors=as_json if log_format == "json" else [_sentence],
        # At each event, since a progress bar puts itself in the place of stderr for a while.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )


def _first_things_first(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:  # noqa: ANN401
    return {name: event[name] for name in ("timestamp", "level", "event")} | dict(event)


def _sentence(_: Any, __: str, event: MutableMapping[str, Any]) -> str:  # noqa: ANN401
    """The event's message; where it has none, its name and fields."""
    fields = [f"{name}={value}" for name, value in event.items() if name != "event"]
    return printable(str(event.get("message") or " ".join([str(event["event"]), *fields])))


@contextmanager
def logged_failures(log_format: LogFormat) -> Iterator[None]:
    """Log the error that ends a command as JSON too; as text, its sentence is all that is printed."""
    try:
        yield
    except IndexerError as error:
        if log_format == "text":
            raise
        structlog.get_logger().error("failed", error=type(error).__name__, message=str(error))
        raise click.exceptions.Exit(2) from error


class Reporter:
    """Logs what a run tells, with the block bound to each event: steps only where something changes."""

    def __init__(self) -> None:
        self._log = structlog.get_logger()
        self._caught_up = False
        self._held = False
        self._waits_for: str | None = None

    def __call__(self, notice: Notice) -> None:
        """Log a notice; an `indexer.notices.Observer`."""
        match notice:
            case Listening(url=url):
                self._log.info(
                    "listening", url=url, message=f"Listening at {url}: /health, /ready, /status and /metrics."
                )
            case Waiting(error=error):
                self._wait(error.holder or "the process that writes")
            case Writing(store=store):
                self._log.info("writing", database=store.label, message=f"Writing to {store.label}.")
            case Reading(first=first, last=last):
                bind_contextvars(range=[first, last])
            case Stepped():
                self._step(notice)
            case Replaced(ancestor=ancestor, depth=depth):
                self._log.warning(
                    "reorganised", ancestor=ancestor, depth=depth,
                    message=f"The chain replaced {depth} blocks above block {ancestor}; the index followed.",
                )  # fmt: skip
            case Retried(error=failure, seconds=seconds):
                self._log.warning(
                    "retrying", error=type(failure).__name__, seconds=seconds,
                    message=f"{failure} Trying again in {seconds:g} s.",
                )  # fmt: skip
            case ProviderChanged(provider=provider, set_aside=why):
                self._provider(provider, why)
            case Weakened(provider=provider, why=why):
                self._log.warning("weakened", provider=provider, why=why, message=f"{provider}: {why}")

    def _wait(self, holder: str) -> None:
        if holder != self._waits_for:
            self._waits_for = holder
            self._log.info("standing_by", holder=holder, message=f"Standing by for {holder}.")

    def _step(self, step: Stepped) -> None:
        unbind_contextvars("range")
        block, head = step.cursor.number, step.head.number
        bind_contextvars(block=block, head=head)
        held = step.outcome == "held"
        if held and not self._held:
            self._log.warning(
                "held", message=f"The node's head {head} is below the index at block {block}; holding until it is back."
            )
        elif self._held and not held:
            self._log.info("released", message=f"The node's head is back at block {head}; going on.")
        elif step.outcome == "current" and not self._caught_up:
            self._caught_up = True
            self._log.info("caught_up", message=f"Caught up with the chain at block {block}.")
        self._held = held

    def _provider(self, provider: str, why: str | None) -> None:
        if why is None:
            self._log.info("provider_back", provider=provider, message=f"{provider} is asked again.")
        else:
            self._log.warning(
                "provider_set_aside", provider=provider, why=why, message=f"{provider} is set aside: {why}"
            )
