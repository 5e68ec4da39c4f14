"""What people sign (EIP-712, domain "Counterfoil" version "1" of each contract), and ids that follow from terms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from eth_abi.abi import encode
from eth_account import Account
from eth_account.messages import SignableMessage, encode_typed_data
from eth_account.signers.local import LocalAccount
from eth_hash.auto import keccak

from counterfoil.chain.contracts import ExperienceRecord, address, word

_VOUCHER: Final = (("sessionId", "bytes32"), ("amount", "uint256"), ("calls", "uint256"))
_RATING: Final = (("sessionId", "bytes32"), ("score", "uint8"))
_EXPERIENCE: Final = (
    ("sessionId", "bytes32"), ("tool", "string"), ("need", "string"), ("task", "string"), ("worked", "bool"),
    ("calls", "uint32"), ("failures", "uint32"), ("judgeScore", "uint8"), ("latencyMs", "uint32"),
    ("cost", "uint256"), ("message", "string"), ("note", "string"),
)  # fmt: skip


_FAILURE: Final = (
    ("sessionId", "bytes32"), ("calls", "uint256"), ("request", "bytes32"), ("status", "uint16"), ("reason", "string"),
)  # fmt: skip
_HEARTBEAT: Final = (("nodeId", "uint256"), ("sentAt", "uint256"), ("digest", "bytes32"))


@dataclass(frozen=True, slots=True)
class TypedData:
    """One message for one contract on one chain."""

    kind: str
    chain_id: int
    contract: str
    types: tuple[tuple[str, str], ...]
    message: Mapping[str, Any]

    def signable(self) -> SignableMessage:
        """The message as eth-account signs it."""
        domain = {
            "name": "Counterfoil",
            "version": "1",
            "chainId": self.chain_id,
            "verifyingContract": address(self.contract),
        }
        types = {self.kind: [{"name": name, "type": kind} for name, kind in self.types]}
        return encode_typed_data(domain, types, dict(self.message))

    def sign(self, account: LocalAccount) -> bytes:
        """The account's signature, 65 bytes."""
        return bytes(account.sign_message(self.signable()).signature)

    def signer_of(self, signature: bytes) -> str | None:
        """Who signed, in lower case; None where the signature is malformed."""
        try:
            return str(Account.recover_message(self.signable(), signature=signature)).lower()
        except Exception:  # noqa: BLE001 - eth-keys raises whatever its parts raise; hostile bytes must not pass through
            return None


def voucher(chain_id: int, manager: str, session_id: str, amount: int, calls: int) -> TypedData:
    """A cumulative voucher: `amount` base units for `calls` calls so far."""
    message = {"sessionId": word(session_id), "amount": amount, "calls": calls}
    return TypedData("Voucher", chain_id, manager, _VOUCHER, message)


def rating(chain_id: int, ledger: str, session_id: str, score: int) -> TypedData:
    """A rating of 0 to 100."""
    return TypedData("Rating", chain_id, ledger, _RATING, {"sessionId": word(session_id), "score": score})


def experience(chain_id: int, ledger: str, record: ExperienceRecord) -> TypedData:
    """An experience record."""
    names = (name for name, _ in _EXPERIENCE)
    message = dict(zip(names, record.as_tuple(), strict=True))
    return TypedData("Experience", chain_id, ledger, _EXPERIENCE, message)


def failure(
    chain_id: int, manager: str, session_id: str, calls: int, request: str, status: int, reason: str
) -> TypedData:
    """An operator's word that the call of that number and request digest was not served and charges nothing.

    `status` is the HTTP status that the node answered with. No contract reads it: it is evidence for people.
    """
    message = {
        "sessionId": word(session_id), "calls": calls, "request": word(request), "status": status, "reason": reason,
    }  # fmt: skip
    return TypedData("Failure", chain_id, manager, _FAILURE, message)


def heartbeat(chain_id: int, registry: str, node_id: int, sent_at: int, digest: str) -> TypedData:
    """An operator's report on its node at `sent_at` (seconds); `digest` is keccak256 of its canonical JSON."""
    message = {"nodeId": node_id, "sentAt": sent_at, "digest": word(digest)}
    return TypedData("Heartbeat", chain_id, registry, _HEARTBEAT, message)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a session's id is made of; `signer` is the effective one, `price_cap` 2**256 - 1 where there is none."""

    client: str
    service_id: int
    node_id: int
    price: int
    signer: str
    draw_seed: str
    policy: int
    nonce: int
    attempt: int
    snapshot_block: int
    price_cap: int
    decision: str


def session_id(chain_id: int, manager: str, terms: Terms) -> str:
    """The id that SessionManager gives a session of these terms (design section 3)."""
    kinds = (
        "uint256", "address", "address", "uint256", "uint256", "uint256", "address", "bytes32", "uint8", "uint256",
        "uint256", "uint256", "uint256", "bytes32",
    )  # fmt: skip
    words = (
        chain_id, address(manager), address(terms.client), terms.service_id, terms.node_id, terms.price,
        address(terms.signer), word(terms.draw_seed), terms.policy, terms.nonce, terms.attempt,
        terms.snapshot_block, terms.price_cap, word(terms.decision),
    )  # fmt: skip
    return "0x" + keccak(encode(kinds, words)).hex()
