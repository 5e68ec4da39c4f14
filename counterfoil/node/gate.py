"""Which call is served: the rules of `vouchers` against the chain and the book, and the answer to a retry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from eth_account.signers.local import LocalAccount

from counterfoil.chain.typed_data import failure as failure_data
from counterfoil.chain.typed_data import voucher as voucher_data
from counterfoil.node.book import Answer, Known, Record, VoucherBook
from counterfoil.node.reading import Reader
from counterfoil.node.vouchers import (
    Refusal,
    RefusedError,
    Voucher,
    check_amount,
    check_confirmed,
    check_next,
    check_ours,
    check_session,
)
from counterfoil.node.wire import Failure
from counterfoil.routing.lottery import category_id


@dataclass(frozen=True, slots=True)
class Admitted:
    """A call that is held in the book, and where it goes."""

    voucher: Voucher
    request: str
    upstream: str


class Gate:
    """Lets calls in, one at a time for each session. Every method asks the chain or the disk: call it in a thread.

    `upstreams` are URLs by category, "" for every category; `kept` is told of every call that was paid for.
    """

    def __init__(
        self,
        node_id: int,
        account: LocalAccount,
        reader: Reader,
        book: VoucherBook,
        upstreams: Mapping[str, str],
        kept: Callable[[], None] = lambda: None,
    ) -> None:
        self.node_id = node_id
        self.operator = str(account.address).lower()
        self._account = account
        self._reader = reader
        self._book = book
        self._kept = kept
        self._any = upstreams.get("")
        self._upstreams = {"0x" + category_id(name).hex(): url for name, url in upstreams.items() if name}

    def admit(self, voucher: Voucher, request: str) -> Admitted | Answer:
        """Hold the voucher of a call and say where the call goes, or give the answer that its retry gets.

        Raises RefusedError, ChainError and BookError.
        """
        stored = self._stored(voucher, request)
        if stored:
            return stored
        view = self._reader.view(voucher.session_id)
        check_session(view.now, self.node_id, self.operator, view.head.timestamp)
        self._check_signature(view.now.signer, voucher)
        record = self._book.record(voucher.session_id)
        check_next(view.now, record.last if record else None, voucher)
        check_confirmed(view.confirmed, self.operator, voucher.amount, self._reader.depth)
        upstream = self._upstreams.get(view.category_id, self._any)
        if upstream is None:
            raise RefusedError(Refusal.NOT_SERVED, "this node does not serve the session's category now; open another")
        try:
            self._book.hold(view.known(voucher.session_id), voucher, request)
        except RefusedError:
            stored = self._stored(voucher, request)  # the call itself may have been served in between
            if stored:
                return stored
            raise
        return Admitted(voucher, request, upstream)

    def may_settle(self, voucher: Voucher) -> Known:
        """The session that a client wants settled: any voucher that it signed for the session shows that it may.

        Raises RefusedError.
        """
        record = self._book.record(voucher.session_id)
        if record:
            self._check_signature(record.known.signer, voucher)
            return record.known
        view = self._reader.view(voucher.session_id)
        check_ours(view.now, self.node_id, self.operator)
        self._check_signature(view.now.signer, voucher)
        return view.known(voucher.session_id)

    def keep(self, call: Admitted, answer: Answer) -> None:
        """An admitted call was served."""
        self._book.keep(call.voucher.session_id, answer)
        self._kept()

    def drop(self, call: Admitted) -> None:
        """An admitted call came to nothing."""
        self._book.drop(call.voucher.session_id)

    def failed(self, call: Admitted, status: int, reason: str) -> Failure:
        """An admitted call came to nothing, as the operator signs it."""
        self._book.drop(call.voucher.session_id)
        manager, session_id, calls = self._reader.manager, call.voucher.session_id, call.voucher.calls
        data = failure_data(manager.chain.chain_id, manager.address, session_id, calls, call.request, status, reason)
        signature = "0x" + data.sign(self._account).hex()
        return Failure(session_id, calls, call.request, status, reason, self.operator, signature)

    def _stored(self, voucher: Voucher, request: str) -> Answer | None:
        """The answer to a retry of the session's last served call, None for any other call."""
        record = self._book.record(voucher.session_id)
        if record is None or record.last is None or record.last.calls != voucher.calls:
            return None
        self._check_retry(record, voucher, request)
        return self._book.answer(voucher.session_id)

    def _check_retry(self, record: Record, voucher: Voucher, request: str) -> None:
        self._check_signature(record.known.signer, voucher)
        if record.request != request:
            raise RefusedError(Refusal.OTHER_REQUEST, f"call {voucher.calls} was another request, which was served")
        check_amount(record.known.price, voucher)

    def _check_signature(self, signer: str, voucher: Voucher) -> None:
        manager = self._reader.manager
        chain_id = manager.chain.chain_id
        data = voucher_data(chain_id, manager.address, voucher.session_id, voucher.amount, voucher.calls)
        if data.signer_of(voucher.signature) != signer:
            raise RefusedError(Refusal.BAD_SIGNATURE, f"the voucher is not signed by {signer}")
