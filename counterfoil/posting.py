"""Taking a signed record of experience without the chain, under the rules of ExperienceLedger.

A rule is named as docs/specification.md names it (EL-2 and so on). What is taken counts from the next block on; it can
be attested later, and then counts once (see indexer/posted.py).
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

from counterfoil.chain.contracts import ExperienceRecord
from counterfoil.chain.errors import RevertedError
from counterfoil.chain.typed_data import experience
from indexer.decode import clean_text
from indexer.posted import Claim, Standing, add_posted, standing
from indexer.rows import NO_JUDGE, SETTLED, Experience
from indexer.store.database import Store
from indexer.store.reader import read_meta

MAX_BYTES = {"tool": 64, "need": 64, "task": 64, "message": 160, "note": 280}
"""Most bytes of a record's texts, in UTF-8."""
MAX_SCORE = 100
MAX_SIGNATURE = 1024
MAX_POSTED = 16
"""Most records that are taken of one session; on chain there is no such bound, since each costs gas."""
_MAX_S = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
_KEY_SIGNATURE = 65

AsksLedger = Callable[[str, ExperienceRecord, bytes], bool]
"""Whether the ledger takes a signature as that of a client: asked for wallet contracts (ERC-1271)."""


class RefusedError(Exception):
    """A record breaks a rule; `rule` is its name."""

    def __init__(self, rule: str, sentence: str) -> None:
        super().__init__(f"{rule}: {sentence}")
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Taken:
    """Where a record was taken: it counts from `counts_from` on."""

    session_id: str
    service_id: int
    tool: str
    counts_from: int


def post(
    store: Store, service_id: int, record: ExperienceRecord, signature: bytes, ask_ledger: AsksLedger | None
) -> Taken:
    """Check a record against the newest indexed block and take it. Raises RefusedError with the rule that failed."""
    check_form(record)
    with store.read() as connection:
        found, meta = standing(connection, record.session_id), read_meta(connection)
    client = check_session(record, service_id, found).session.client  # an id is of one client's terms, for good
    chain_id, ledger = int(meta["chain_id"]), meta["address.ExperienceLedger"]
    check_signature(client, chain_id, ledger, record, signature, ask_ledger)
    with store.add() as connection:  # what was asked meanwhile may have moved
        check_session(record, service_id, standing(connection, record.session_id))
        counts_from = add_posted(connection, _fact(record, service_id), "0x" + signature.hex())
    return Taken(record.session_id, service_id, record.tool, counts_from)


def check_form(record: ExperienceRecord) -> None:
    """Check what can be told from a record alone."""
    if not record.tool:
        raise RefusedError("EL-9", "the tool is empty: name it")
    for name, most in MAX_BYTES.items():
        size = len(getattr(record, name).encode(errors="replace"))
        if size > most:
            raise RefusedError("EL-9", f"the {name} has {size} bytes, more than {most}: shorten it")
    if record.judge_score > MAX_SCORE and record.judge_score != NO_JUDGE:
        raise RefusedError("EL-9", f"a judge score is 0 to {MAX_SCORE}, or {NO_JUDGE} where nobody judged")
    if record.failures > record.calls:
        raise RefusedError(
            "EL-13", f"{record.failures} calls failed of {record.calls}: no more can fail than were made"
        )


def check_session(record: ExperienceRecord, service_id: int, found: Standing | None) -> Standing:
    """Check a record against its session, and against what is known of it already."""
    if found is None:
        raise RefusedError("EL-2", f"there is no session {record.session_id} in the index")
    session = found.session
    if session.service_id != service_id:
        raise RefusedError("EL-10", f"the session is with service {session.service_id}, not {service_id}")
    if session.status != SETTLED:
        raise RefusedError("EL-2", "the session is not settled: settle it first")
    if session.client == session.operator:
        raise RefusedError("EL-5", "the session's client is the node's own operator")
    _check_room(record, found)
    return found


def _check_room(record: ExperienceRecord, found: Standing) -> None:
    session = found.session
    if clean_text(record.tool.encode()) in {claim.tool for claim in (*found.attested, *found.posted)}:
        raise RefusedError("EL-6", f"the session has a record of the tool {record.tool} already")
    counted: list[Claim] = [*found.attested, *found.counted()]
    left = session.paid - sum(claim.cost for claim in counted)
    if record.cost > left:
        raise RefusedError(
            "EL-7", f"the record costs {record.cost}, more than the {left} left of the session's payment"
        )
    if len(counted) >= max(1, session.calls):
        raise RefusedError("EL-8", f"the session made {session.calls} calls and has {len(counted)} records already")
    if len(found.posted) >= MAX_POSTED:
        raise RefusedError("limit", f"at most {MAX_POSTED} records of a session are taken here: attest it on chain")


def check_signature(
    client: str, chain_id: int, ledger: str, record: ExperienceRecord, signature: bytes, ask_ledger: AsksLedger | None
) -> None:
    """Check that a client signed a record: by its key, or by ERC-1271 where that fails."""
    if is_canonical(signature) and experience(chain_id, ledger, record).signer_of(signature) == client:
        return
    if len(signature) > MAX_SIGNATURE:
        raise RefusedError("EL-3", f"the signature has {len(signature)} bytes, more than {MAX_SIGNATURE}")
    if ask_ledger is None:
        raise RefusedError(
            "EL-3",
            f"the signature is not by the key of the client {client}; whether it is a wallet's (ERC-1271) cannot be "
            "told here, since this server asks no chain",
        )
    try:
        valid = ask_ledger(client, record, signature)
    except RevertedError as error:  # the chain is ahead of the index
        raise RefusedError("ledger", f"the ledger itself would refuse it now: {error.reason}") from None
    if not valid:
        raise RefusedError("EL-3", f"the signature is not one of the client {client}: sign with the session's client")


def is_canonical(signature: bytes) -> bool:
    """Tell whether a signature has the one form that the contracts take of a key: 65 bytes, low s, v 27 or 28."""
    return (
        len(signature) == _KEY_SIGNATURE
        and int.from_bytes(signature[32:64], "big") <= _MAX_S
        and signature[64] in {27, 28}
    )


def _fact(record: ExperienceRecord, service_id: int) -> Experience:
    """Make the row that an event of this record would have made."""
    texts = {name: clean_text(getattr(record, name).encode()) for name in MAX_BYTES}
    given = {field.name: getattr(record, field.name) for field in fields(record)}
    return Experience(**given | texts, service_id=service_id)
