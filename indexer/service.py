"""The commands of the index as plain functions: what `counterfoil index` calls. Each returns a frozen value."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from indexer import query, sync
from indexer.chain import parse_quantity
from indexer.deployment import Deployment, load_deployment
from indexer.errors import LockedError, RetryableError, UnknownBlockError, WrongChainError
from indexer.identity import check_identity
from indexer.notices import Ended, Listening, Observer, Waiting, Writing, all_of, silent
from indexer.rpc import HttpRpc
from indexer.settings import Settings
from indexer.store.compare import Comparison, examine
from indexer.store.database import database_url, label_of, open_store
from indexer.store.lock import Patience
from indexer.store.writer import open_writer
from indexer.sync import SyncOptions, SyncResult
from indexer.views import AsOf, Status

STANDBY_SECONDS = 0.1
"""How often a process that stands by tries the lock."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is about to do. `providers` are URLs without what may be secret.

    `waiting` says why no node was seen yet, where the run will wait for one.
    """

    database: str
    chain_id: int
    first_block: int
    providers: tuple[str, ...]
    waiting: str | None


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


@contextmanager
def open_rpcs(settings: Settings) -> Iterator[list[HttpRpc]]:
    """Make the clients of the nodes that the settings name, in the order in which they are tried."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(HttpRpc(url, seconds=settings.request_seconds, max_bytes=settings.max_response_bytes))
            for url in settings.rpc_urls()
        ]


def sync_options(settings: Settings) -> SyncOptions:
    """Take the loop's limits from the settings."""
    return SyncOptions(
        max_range=settings.max_range_blocks,
        poll_seconds=settings.poll_seconds,
        verify=settings.verify,
        confirmations=settings.confirmations,
        finality=settings.finality,
        websocket_url=settings.rpc_websocket_url,
        raw_log_blocks=settings.raw_log_blocks,
        reader_blocks=settings.reader_blocks,
    )


def index_plan(settings: Settings, follow: bool = False) -> Plan:
    """Say what `index_run` would do, having checked that the node is on the deployment's chain; writes nothing.

    Raises a UserError, and where no node answers a RetryableError, unless it is to `follow`. One of several is enough.
    """
    deployment = load_deployment(settings.deployment_path())
    database = label_of(database_url(settings.database_url()))
    waiting = None
    with open_rpcs(settings) as rpcs:
        try:
            _check_any(rpcs, deployment)
        except RetryableError as error:
            if not follow:
                raise
            waiting = str(error)
    return Plan(database, deployment.chain_id, deployment.first_block, settings.shown_rpc_urls(), waiting)


def index_run(
    settings: Settings,
    follow: bool = False,
    observer: Observer = silent,
    *,
    stop: threading.Event | None = None,
    wait: bool = False,
) -> SyncResult | None:
    """Catch up with the chain, and go on following it until `stop` where asked to; it then also listens.

    With `wait`, stand by while another process writes, and take over from it; None when stopped while standing by.
    Raises UserErrors; without `follow` also the last RetryableError of a node that does not recover.
    """
    deployment = load_deployment(settings.deployment_path())
    stop = stop or threading.Event()
    with _observed(settings, deployment, follow, observer) as tell:
        patience = _patience(tell, stop) if wait else None
        try:
            return _write(settings, deployment, follow, tell, stop, patience)
        except LockedError:
            if wait and stop.is_set():
                return None
            raise


def _check_any(rpcs: Sequence[HttpRpc], deployment: Deployment) -> None:
    """Find a node on the deployment's chain. Raises WrongChainError only where every node is on another one."""
    failures: list[RetryableError | WrongChainError] = []
    for rpc in rpcs:
        try:
            return check_identity(rpc, deployment)
        except (RetryableError, WrongChainError) as error:
            failures.append(error)
    raise next((error for error in failures if isinstance(error, RetryableError)), failures[0])


def _write(
    settings: Settings,
    deployment: Deployment,
    follow: bool,
    tell: Observer,
    stop: threading.Event,
    patience: Patience | None,
) -> SyncResult:
    options = sync_options(settings)
    with (
        open_writer(settings.database_url(), deployment, patience=patience) as writer,
        open_rpcs(settings) as rpcs,
    ):
        tell(Writing(writer.store))
        try:
            if follow:
                return sync.follow(writer, rpcs, stop=stop, options=options, observer=tell)
            return sync.run_once(writer, rpcs, options=options, observer=tell, stop=stop)
        finally:
            tell(Ended())


def _patience(tell: Observer, stop: threading.Event) -> Patience:
    def wait(error: LockedError) -> bool:
        tell(Waiting(error))
        return not stop.wait(STANDBY_SECONDS)

    return wait


@contextmanager
def _observed(settings: Settings, deployment: Deployment, follow: bool, observer: Observer) -> Iterator[Observer]:
    """Have the run observed by the monitor too, and that answer over HTTP, where the settings say so."""
    address = settings.listen_address()
    if address is None or not follow:
        yield observer
        return
    from indexer.listening import listening
    from indexer.monitor import Monitor

    monitor = Monitor(settings, deployment)
    with listening(monitor, address) as url:
        observer(Listening(url))
        yield all_of(monitor.observe, observer)


def index_status(settings: Settings) -> IndexStatus:
    """Say how far the index is, and how far the chain is where the node answers."""
    with open_store(settings.database_url()) as store:
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


def index_verify(settings: Settings, against: str | Path) -> Comparison:
    """Compare this index with another of the same deployment, a file or a URL, block by block, by the rows of both."""
    with open_store(settings.database_url()) as ours, open_store(against, setting="--against") as theirs:
        return examine(ours, theirs)


def _head(settings: Settings) -> int | None:
    with open_rpcs(settings) as rpcs:
        for rpc in rpcs:
            try:
                return parse_quantity(rpc.call("eth_blockNumber", []))
            except RetryableError:
                continue
    return None


__all__ = [
    "Comparison", "IndexStatus", "Plan", "RebuildResult", "index_plan", "index_rebuild", "index_run", "index_status",
    "index_verify", "open_rpcs", "sync_options",
]  # fmt: skip
