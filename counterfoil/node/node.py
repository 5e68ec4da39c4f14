"""A node: takes calls with vouchers, serves them by its upstream, and settles."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog
from eth_account.signers.local import LocalAccount

from counterfoil.chain.connection import Chain
from counterfoil.chain.contracts import SessionManager, SessionState, SessionStatus
from counterfoil.chain.sender import Sender
from counterfoil.chain.typed_data import voucher as voucher_data
from counterfoil.node.book import VoucherBook
from counterfoil.node.vouchers import Refusal, RefusedError, Voucher, check_next, check_session, is_due
from indexer.errors import IndexerError

_log = structlog.get_logger()


class UpstreamError(Exception):
    """The service behind the node failed: the call charges nothing."""


# The service behind a node: answers one request. Whatever it raises, the call charges nothing.
Upstream = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Settled:
    """How a session ended: `paid` in base units, for `calls`."""

    session_id: str
    paid: int
    calls: int


class Node:
    """One registered node and the service behind it."""

    def __init__(self, chain: Chain, account: LocalAccount, node_id: int, upstream: Upstream, folder: Path) -> None:
        self.node_id = node_id
        self._chain = chain
        self._manager = SessionManager(chain)
        self._sender = Sender(chain, account)
        self._sending = threading.Lock()
        self._upstream = upstream
        self._book = VoucherBook(folder / f"node-{node_id}.sqlite")

    def serve(self, voucher: Voucher, body: bytes) -> bytes:
        """Serve one call. Raises RefusedError before, and UpstreamError instead of, serving it."""
        session = self._manager.session(voucher.session_id)
        check_session(session, self.node_id, self._sender.address, self._chain.head().timestamp)
        check_next(session, self._book.last(voucher.session_id), voucher)
        self._check_signature(session, voucher)
        self._book.hold(voucher)
        try:
            answer = self._upstream(body)
        except Exception as error:
            self._book.drop(voucher.session_id)
            raise UpstreamError(f"{type(error).__name__}: {error}") from error
        self._book.keep(voucher)
        return answer

    def settle(self, voucher: Voucher) -> Settled:
        """Settle at the last served call, because the client asks: any voucher that it signed for the session shows it.

        Raises RefusedError while a call of the session is being served.
        """
        session = self._manager.session(voucher.session_id)
        if session.status == SessionStatus.NONE or session.node_id != self.node_id:
            raise RefusedError(Refusal.NOT_OURS, "this node has no such session")
        self._check_signature(session, voucher)
        return self._settle(voucher.session_id)

    def settle_due(self) -> None:
        """Settle every session that its client is closing, or that expired, before anyone may end it at zero."""
        for voucher in self._book.unsettled():
            session = self._manager.session(voucher.session_id)
            if is_due(session, self._chain.head().timestamp):
                self._settle(voucher.session_id)

    def watch(self, stop: threading.Event, seconds: float) -> None:
        """Settle what is due every so many seconds, until told to stop. A fault is logged, and tried again."""
        while not stop.wait(seconds):
            try:
                self.settle_due()
            except (IndexerError, RefusedError) as error:
                _log.warning("not settled yet", node_id=self.node_id, reason=str(error)[:200])

    def _settle(self, session_id: str) -> Settled:
        last = self._book.claim(session_id)
        try:
            session = self._send_settlement(last)
        except BaseException:
            self._book.drop(session_id)
            raise
        self._book.settled(session_id)
        return Settled(session_id, session.paid, session.calls)

    def _send_settlement(self, last: Voucher) -> SessionState:
        session = self._manager.session(last.session_id)
        if session.status != SessionStatus.SETTLED:
            with self._sending:
                self._sender.send(self._manager.settle(last.session_id, last.amount, last.calls, last.signature))
            session = self._manager.session(last.session_id)
        return session

    def _check_signature(self, session: SessionState, voucher: Voucher) -> None:
        data = voucher_data(
            self._chain.chain_id, self._manager.address, voucher.session_id, voucher.amount, voucher.calls
        )
        if data.signer_of(voucher.signature) != session.signer:
            raise RefusedError(Refusal.BAD_SIGNATURE, f"the voucher is not signed by {session.signer}")
