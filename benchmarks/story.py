"""Every call of every contract, told twice: the first time nothing is stored yet, the second time everything is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from web3.types import TxReceipt

from benchmarks.stage import (
    AUTHORIZATION,
    CHALLENGE_PERIOD,
    DEPOSIT,
    EXPERIENCE,
    MAX_DURATION,
    NOBODY,
    PRICE,
    RATING,
    RESOLVE_WINDOW,
    STAKE,
    UNBONDING_PERIOD,
    VOUCHER,
    Stage,
)

CATEGORY = "data:crypto-price"
ENDPOINT = "https://node.example"
METADATA = "ipfs://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
CALLS = 12
PAID = PRICE * CALLS


@dataclass
class Story:
    """Notes what each call costs, and its transaction for the profile."""

    stage: Stage
    gas: dict[str, int] = field(default_factory=dict)
    transactions: dict[str, str] = field(default_factory=dict)
    rounds: int = 0
    market_node: int = 0

    def tell(self) -> dict[str, int]:
        """Make every call once, and give the costs by `Contract.call`."""
        self.gas = {}
        self.rounds += 1
        node_id = self._registry()
        self.market_node = self.market_node or node_id
        self._court_calls_of_the_registry()
        self._sessions()
        self._ledgers()
        self._court()
        return dict(self.gas)

    def note(
        self, role: str, contract: str, function: str, *arguments: object, case: str = "", as_of: str = ""
    ) -> TxReceipt:
        """Make a call and note its cost."""
        receipt = self.stage.transact(role, self.stage.call(contract, function, *arguments))
        name = f"{as_of or contract}.{function}" + (f" ({case})" if case else "")
        self.gas[name] = receipt["gasUsed"]
        self.transactions[name] = "0x" + bytes(receipt["transactionHash"]).hex()
        return receipt

    def quiet(self, role: str, contract: str, function: str, *arguments: object) -> TxReceipt:
        """Make a call that is not noted."""
        return self.stage.transact(role, self.stage.call(contract, function, *arguments))

    def logged(self, contract: str, event: str, receipt: TxReceipt) -> Mapping[str, Any]:
        """The arguments of the only event of a name."""
        kind = getattr(self.stage.contracts[contract].events, event)()
        (found,) = [kind.process_log(log) for log in receipt["logs"] if log["topics"][0].hex() == kind.topic[2:]]
        args: Mapping[str, Any] = found["args"]
        return args

    def _registry(self) -> int:
        registry, operator = "NodeRegistry", "operator"
        receipt = self.note(operator, registry, "register_node", ENDPOINT, STAKE)
        node_id = int(self.logged(registry, "NodeRegistered", receipt)["node_id"])
        self.note(operator, registry, "set_endpoint", node_id, ENDPOINT + "/v1")
        self.note(operator, registry, "set_capability", node_id, "routing.v1", True, case="add")
        self.note(operator, registry, "set_capability", node_id, "routing.v1", False, case="remove")
        receipt = self.note(operator, registry, "list_service", node_id, CATEGORY, PRICE, METADATA)
        service_id = int(self.logged(registry, "ServiceListed", receipt)["service_id"])
        self.note(operator, registry, "set_price", service_id, PRICE + 1)
        self.quiet(operator, registry, "set_price", service_id, PRICE)
        self.note(operator, registry, "set_active", service_id, False, case="pause")
        self.note(operator, registry, "set_active", service_id, True, case="resume")
        self.note(operator, registry, "set_metadata", service_id, METADATA[::-1])
        self.note(operator, registry, "transfer_node", node_id, self.stage.address("heir"))
        self.note("heir", registry, "accept_node", node_id)
        self.quiet("heir", registry, "transfer_node", node_id, self.stage.address(operator))
        self.quiet(operator, registry, "accept_node", node_id)
        self.note(operator, registry, "add_stake", node_id, STAKE)
        self.note(operator, registry, "request_unstake", node_id, STAKE)
        self.stage.pass_time(UNBONDING_PERIOD)
        self.note(operator, registry, "withdraw_stake", node_id)
        return node_id

    def _court_calls_of_the_registry(self) -> None:
        held = "HeldRegistry"
        node = self.quiet("operator", held, "register_node", ENDPOINT, STAKE)
        node_id = int(self.logged(held, "NodeRegistered", node)["node_id"])
        for function, arguments in (("hold", ()), ("slash", (STAKE // 10,)), ("release", ())):
            self.note("bailiff", held, function, node_id, *arguments, as_of="NodeRegistry")

    def _terms(self, role: str, deposit: int = DEPOSIT, signer: str = NOBODY) -> tuple[Any, ...]:
        return (self.market_node, deposit, PRICE, MAX_DURATION, signer, self.stage.choice(role))

    def _opened(self, receipt: TxReceipt) -> bytes:
        return bytes(self.logged("SessionManager", "SessionOpened", receipt)["session_id"])

    def _open(self, role: str = "client", deposit: int = DEPOSIT) -> bytes:
        return self._opened(self.quiet(role, "SessionManager", "open", *self._terms(role, deposit)))

    def _voucher(self, session_id: bytes, role: str = "client") -> tuple[bytes, int, int, bytes]:
        message = {"sessionId": session_id, "amount": PAID, "calls": CALLS}
        return session_id, PAID, CALLS, self.stage.sign(role, "SessionManager", VOUCHER, message)

    def _settled(self) -> bytes:
        session_id = self._open()
        self.quiet("operator", "SessionManager", "settle", *self._voucher(session_id))
        return session_id

    def _disputed(self) -> bytes:
        session_id = self._settled()
        self.quiet("client", "DisputeCourt", "open_dispute", session_id, PAID, METADATA)
        return session_id

    def _sessions(self) -> None:
        manager = "SessionManager"
        session_id = self._opened(self.note("client", manager, "open", *self._terms("client")))
        # This one stays open, so that the node's counter is above zero from here on.
        self._open(deposit=PRICE)
        keyed = self._terms("client", PRICE, self.stage.address("heir"))
        self.note("client", manager, "open", *keyed, case="session key")
        self.note("client", manager, "top_up", session_id, DEPOSIT)
        self.note("operator", manager, "settle", *self._voucher(session_id))
        # Its refund is credit enough for the whole second telling.
        closing = self._open(deposit=DEPOSIT if self.rounds > 1 else 50 * DEPOSIT)
        self.note("client", manager, "request_close", closing)
        self.stage.pass_time(CHALLENGE_PERIOD)
        self.note("relayer", manager, "finish_close", closing)
        expiring = self._open()
        self.stage.pass_time(MAX_DURATION + CHALLENGE_PERIOD)
        self.note("relayer", manager, "expire", expiring)
        unpaid = self._open()
        self.note("operator", manager, "settle", unpaid, 0, 0, b"", case="at zero")
        self._open_with_transfer()
        self._open_with_authorization()
        self.note("operator", manager, "withdraw", self.stage.address("operator"))
        self.quiet("operator", manager, "settle", *self._voucher(self._open()))

    def _open_with_transfer(self) -> None:
        """A client that has no credit pays by a token transfer, this time and every time."""
        credit = self.stage.call("SessionManager", "credit_of", self.stage.address("heir")).call()
        if credit:
            self.quiet("heir", "SessionManager", "withdraw", self.stage.address("heir"))
        self.note("heir", "SessionManager", "open", *self._terms("heir"), case="no credit")
        self.note("heir", "SessionManager", "top_up", self._open("heir"), DEPOSIT, case="no credit")

    def _open_with_authorization(self) -> None:
        terms = self._terms("relayer")
        nonce = self.stage.terms_hash("relayer", terms)
        message = {
            "from": self.stage.address("relayer"),
            "to": self.stage.contracts["SessionManager"].address,
            "value": DEPOSIT,
            "validAfter": 0,
            "validBefore": 2**40,
            "nonce": nonce,
        }
        signature = self.stage.sign("relayer", "TestToken", AUTHORIZATION, message)
        arguments = (self.stage.address("relayer"), *terms, (DEPOSIT, 0, 2**40), signature)
        self.note("client", "SessionManager", "open_with_authorization", *arguments)

    def _record(self, session_id: bytes, tool: str) -> tuple[Any, ...]:
        message = "second call succeeded after a retry with a smaller window"
        note = "slow at first, then quick; prices agree with two other sources"
        texts = (tool, "data:crypto", "bitcoin price")
        return (session_id, *texts, True, CALLS, 1, 92, 850, PRICE, message, note)

    def _signed(self, record: tuple[Any, ...]) -> bytes:
        names = [name for name, _ in EXPERIENCE["Experience"]]
        return self.stage.sign("client", "ExperienceLedger", EXPERIENCE, dict(zip(names, record, strict=True)))

    def _ledgers(self) -> None:
        session_id = self._settled()
        self.note("client", "ReputationLedger", "rate", session_id, 80)
        relayed = self._settled()
        signature = self.stage.sign("client", "ReputationLedger", RATING, {"sessionId": relayed, "score": 80})
        self.note("relayer", "ReputationLedger", "rate_by_signature", relayed, 80, signature)
        ledger = "ExperienceLedger"
        record = self._record(session_id, "price-feed")
        self.note("client", ledger, "attest", record, self._signed(record), case="first of a session")
        record = self._record(session_id, "candles")
        self.note("client", ledger, "attest", record, self._signed(record), case="further of a session")
        records = [self._record(relayed, tool) for tool in ("price-feed", "candles")]
        self.note("client", ledger, "attest_many", records, [self._signed(one) for one in records], case="2 records")

    def _court(self) -> None:
        court = "DisputeCourt"
        session_id = self._settled()
        self.note("client", court, "open_dispute", session_id, PAID, METADATA)
        self.note("arbiter", court, "resolve", session_id, PAID, case="upheld")
        self.note("arbiter", court, "resolve", self._disputed(), 0, case="refused")
        self._disputed()
        self.stage.pass_time(RESOLVE_WINDOW)
        self.note("relayer", court, "drop", self.stage.call(court, "dispute_count").call())
        self.note("client", court, "withdraw", self.stage.address("client"))
        self.quiet("arbiter", court, "resolve", self._disputed(), PAID)
        self.note("arbiter", court, "offer_arbiter", self.stage.address("heir"))
        self.note("heir", court, "accept_arbiter")
        self.quiet("heir", court, "offer_arbiter", self.stage.address("arbiter"))
        self.quiet("arbiter", court, "accept_arbiter")
