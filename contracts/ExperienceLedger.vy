# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title ExperienceLedger
@license Apache-2.0
@notice What agents found: one signed record per settled session and tool. The text is in the event; storage keeps what
        is needed to refuse a second record.
@dev    One session pays for one opinion of each tool: its records never add up to more than it paid, nor count more than
        the calls of its last voucher.
"""


from .interfaces import ISessionManager
from .modules import packing
from .modules import signatures


struct Experience:
    session_id: bytes32
    tool: String[64]
    need: String[64]
    task: String[64]
    worked: bool
    calls: uint32
    failures: uint32
    judge_score: uint8
    latency_ms: uint32
    cost: uint256
    message: String[160]
    note: String[280]


MAX_SCORE: constant(uint8) = 100
NO_JUDGE: constant(uint8) = 255
MAX_RECORDS: constant(uint256) = 16
MAX_SIGNATURE: constant(uint256) = 1024
EXPERIENCE_TYPE_HASH: constant(bytes32) = keccak256(
    "Experience(bytes32 sessionId,string tool,string need,string task,bool worked,uint32 calls,uint32 failures,uint8 judgeScore,uint32 latencyMs,uint256 cost,string message,string note)"
)

SESSION_MANAGER: immutable(ISessionManager)

attested: public(HashMap[bytes32, HashMap[bytes32, bool]])
spent: HashMap[bytes32, uint256]


event ExperienceDeployed:
    session_manager: address


event ExperienceAttested:
    session_id: indexed(bytes32)
    service_id: indexed(uint256)
    need_id: indexed(bytes32)
    tool: String[64]
    need: String[64]
    task: String[64]
    worked: bool
    calls: uint32
    failures: uint32
    judge_score: uint8
    latency_ms: uint32
    cost: uint256
    message: String[160]
    note: String[280]


@deploy
def __init__(session_manager: ISessionManager):
    """
    @notice Fixes whose sessions are attested.
    """
    assert session_manager.address != empty(address), "experience: empty session manager"
    SESSION_MANAGER = session_manager
    log ExperienceDeployed(session_manager=session_manager.address)


@external
def attest(record: Experience, signature: Bytes[MAX_SIGNATURE]):
    """
    @notice Records what a session's client found of a tool. Anyone may carry the signed record here.
    @param record The record; judge_score is 255 where no judge looked.
    @param signature The client's signature over it.
    """
    self._attest(record, signature)


@external
def attest_many(records: DynArray[Experience, MAX_RECORDS], signed: DynArray[Bytes[MAX_SIGNATURE], MAX_RECORDS]):
    """
    @notice Records up to 16 at once, all or none: whoever carries one of them here first makes this revert.
    """
    assert len(records) == len(signed), "experience: one signature per record"
    for i: uint256 in range(len(records), bound=MAX_RECORDS):
        self._attest(records[i], signed[i])


@external
@view
def session_manager() -> address:
    """
    @notice Whose sessions are attested.
    """
    return SESSION_MANAGER.address


@external
@view
def records_of(session_id: bytes32) -> (uint256, uint256):
    """
    @notice What a session's records cost together, and how many there are.
    """
    spent: uint256 = self.spent[session_id]
    return packing._low(spent), packing._high(spent)


@external
@view
def domain_separator() -> bytes32:
    """
    @notice The EIP-712 domain of records.
    """
    return signatures._domain_separator()


@internal
@pure
def _struct_hash(record: Experience) -> bytes32:
    """
    @notice Forms the EIP-712 hash of a record.
    """
    return keccak256(
        abi_encode(
            EXPERIENCE_TYPE_HASH,
            record.session_id,
            keccak256(record.tool),
            keccak256(record.need),
            keccak256(record.task),
            record.worked,
            record.calls,
            record.failures,
            record.judge_score,
            record.latency_ms,
            record.cost,
            keccak256(record.message),
            keccak256(record.note),
        )
    )


@internal
def _attest(record: Experience, signature: Bytes[MAX_SIGNATURE]):
    """
    @notice Checks and records one record.
    """
    assert len(record.tool) > 0, "experience: empty tool"
    assert record.judge_score <= MAX_SCORE or record.judge_score == NO_JUDGE, "experience: judge score above 100"
    assert record.failures <= record.calls, "experience: more failures than calls"
    session: ISessionManager.Settlement = staticcall SESSION_MANAGER.settlement_of(record.session_id)
    assert session.settled, "experience: session not settled"
    assert session.client != session.operator, "experience: own node"
    digest: bytes32 = signatures._digest(self._struct_hash(record))
    assert signatures._is_valid(session.client, digest, signature), "experience: bad signature"
    self._count(record, session)
    log ExperienceAttested(
        session_id=record.session_id,
        service_id=session.service_id,
        need_id=keccak256(record.need),
        tool=record.tool,
        need=record.need,
        task=record.task,
        worked=record.worked,
        calls=record.calls,
        failures=record.failures,
        judge_score=record.judge_score,
        latency_ms=record.latency_ms,
        cost=record.cost,
        message=record.message,
        note=record.note,
    )


@internal
def _count(record: Experience, session: ISessionManager.Settlement):
    """
    @notice Asserts that this is the session's first record of the tool and within what it paid and called.
    """
    tool_id: bytes32 = keccak256(record.tool)
    assert not self.attested[record.session_id][tool_id], "experience: already attested"
    spent: uint256 = self.spent[record.session_id]
    assert record.cost <= session.paid - packing._low(spent), "experience: costs above what was paid"
    count: uint256 = packing._high(spent)
    assert count < max(1, session.calls), "experience: more records than calls"
    self.attested[record.session_id][tool_id] = True
    self.spent[record.session_id] = packing._low_high(packing._low(spent) + record.cost, count + 1)
