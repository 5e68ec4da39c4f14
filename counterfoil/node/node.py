"""A node: takes calls with vouchers, serves them by its upstream, and settles."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from eth_account.signers.local import LocalAccount

from counterfoil.chain.connection import Chain
from counterfoil.chain.contracts import SessionManager, SessionState
from counterfoil.chain.sender import Sender
from counterfoil.chain.typed_data import voucher as voucher_data
from counterfoil.node.book import VoucherBook
from counterfoil.node.vouchers import Refusal, RefusedError, Voucher, check_next, check_session

SETTLED = 3


class UpstreamError(Exception):
    """The service behind the node failed: the call charges nothing."""


# The service behind a node: answers one request, or raises UpstreamError.
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
        self._sending = Lock()
        self._upstream = upstream
        self._book = VoucherBook(folder / f"node-{node_id}.sqlite")

    def serve(self, voucher: Voucher, body: bytes) -> bytes:
        """Serve one call. Raises RefusedError before, and UpstreamError instead of, serving it."""
        session = self._manager.session(voucher.session_id)
        check_session(session, self.node_id, self._chain.head().timestamp)
        check_next(session, self._book.last(voucher.session_id), voucher)
        self._check_signature(session, voucher)
        self._book.hold(voucher)
        try:
            answer = self._upstream(body)
        except BaseException:
            self._book.drop(voucher)
            raise
        self._book.keep(voucher)
        return answer

    def settle(self, voucher: Voucher) -> Settled:
        """Settle at the last served call. The client asks by showing its last voucher again: nobody else has it."""
        session = self._manager.session(voucher.session_id)
        if session.status == 0 or session.node_id != self.node_id:
            raise RefusedError(Refusal.NOT_OURS, "this node has no such session")
        self._check_signature(session, voucher)
        if session.status == SETTLED:
            return Settled(voucher.session_id, session.paid, session.calls)
        last = self._book.last(voucher.session_id) or Voucher(voucher.session_id, 0, 0, b"")
        with self._sending:
            self._sender.send(self._manager.settle(last.session_id, last.amount, last.calls, last.signature))
        return Settled(last.session_id, last.amount, last.calls)

    def _check_signature(self, session: SessionState, voucher: Voucher) -> None:
        data = voucher_data(
            self._chain.chain_id, self._manager.address, voucher.session_id, voucher.amount, voucher.calls
        )
        if data.signer_of(voucher.signature) != session.signer:
            raise RefusedError(Refusal.BAD_SIGNATURE, f"the voucher is not signed by {session.signer}")
