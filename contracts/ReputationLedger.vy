# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title ReputationLedger
@license Apache-2.0
@notice One rating of 0 to 100 per settled session, by its client. What each rating cost is in its event.
@dev    Self-dealing between accounts of one owner cannot be barred here: the event shows what a session paid, and readers
        weigh it.
"""


from .interfaces import ISessionManager
from .modules import packing
from .modules import signatures


struct Rating:
    rating_sum: uint256
    rating_count: uint256
    unpaid_count: uint256
    paid_weight: uint256
    weighted_sum: uint256


MAX_SCORE: constant(uint8) = 100
FREE_UNPAID: constant(uint256) = 3
MAX_WEIGHT: constant(uint256) = 2 ** 121
MAX_SIGNATURE: constant(uint256) = 1024
RATING_TYPE_HASH: constant(bytes32) = keccak256("Rating(bytes32 sessionId,uint8 score)")

SESSION_MANAGER: immutable(ISessionManager)

tallies: HashMap[uint256, uint256]
weights: HashMap[uint256, uint256]
scores: HashMap[bytes32, uint256]


event ReputationDeployed:
    session_manager: address


event SessionRated:
    session_id: indexed(bytes32)
    node_id: indexed(uint256)
    client: indexed(address)
    service_id: uint256
    score: uint8
    paid: uint256
    counted: bool


@deploy
def __init__(session_manager: ISessionManager):
    """
    @notice Fixes whose sessions are rated.
    """
    assert session_manager.address != empty(address), "reputation: empty session manager"
    SESSION_MANAGER = session_manager
    log ReputationDeployed(session_manager=session_manager.address)


@external
def rate(session_id: bytes32, score: uint8):
    """
    @notice Rates a settled session, once. Its client alone may.
    @param session_id The session.
    @param score 0 to 100.
    """
    session: ISessionManager.Settlement = self._ratable(session_id, score)
    assert session.client == msg.sender, "reputation: not the client"
    self._record(session_id, session, score)


@external
def rate_by_signature(session_id: bytes32, score: uint8, signature: Bytes[MAX_SIGNATURE]):
    """
    @notice Rates a settled session, once, for its client, who signed the rating. Anyone may carry it here.
    """
    session: ISessionManager.Settlement = self._ratable(session_id, score)
    struct_hash: bytes32 = keccak256(abi_encode(RATING_TYPE_HASH, session_id, score))
    assert signatures._is_valid(session.client, signatures._digest(struct_hash), signature), "reputation: bad signature"
    self._record(session_id, session, score)


@external
@view
def session_manager() -> address:
    """
    @notice Whose sessions are rated.
    """
    return SESSION_MANAGER.address


@external
@view
def ratings(node_id: uint256) -> Rating:
    """
    @notice A node's ratings: sum and count of those counted, how many of them were unpaid, and the sum of what the
            sessions paid with the sum of score times paid.
    """
    tally: uint256 = self.tallies[node_id]
    weight: uint256 = self.weights[node_id]
    return Rating(
        rating_sum=packing._rating_sum(tally),
        rating_count=packing._rating_count(tally),
        unpaid_count=packing._unpaid_count(tally),
        paid_weight=packing._low(weight),
        weighted_sum=packing._high(weight),
    )


@external
@view
def score_of(session_id: bytes32) -> (bool, uint8):
    """
    @notice Whether a session was rated, and its score.
    """
    stored: uint256 = self.scores[session_id]
    if stored == 0:
        return False, 0
    return True, convert(stored - 1, uint8)


@external
@view
def domain_separator() -> bytes32:
    """
    @notice The EIP-712 domain of ratings.
    """
    return signatures._domain_separator()


@internal
@view
def _ratable(session_id: bytes32, score: uint8) -> ISessionManager.Settlement:
    """
    @notice Asserts that a session can be rated, and gives what it settled at.
    """
    assert score <= MAX_SCORE, "reputation: score above 100"
    assert self.scores[session_id] == 0, "reputation: already rated"
    session: ISessionManager.Settlement = staticcall SESSION_MANAGER.settlement_of(session_id)
    assert session.settled, "reputation: session not settled"
    assert session.client != session.operator, "reputation: own node"
    return session


@internal
def _record(session_id: bytes32, session: ISessionManager.Settlement, score: uint8):
    """
    @notice Records a rating. One that paid nothing counts only while the counted unpaid ones are fewer than 3 more than
            the paid ones: a node whose calls all failed can be rated, and free ratings move none far. Whoever fills the
            free places first leaves none to others until somebody paid.
    """
    tally: uint256 = self.tallies[session.node_id]
    count: uint256 = packing._rating_count(tally)
    unpaid: uint256 = packing._unpaid_count(tally)
    counted: bool = session.paid > 0 or unpaid < FREE_UNPAID + (count - unpaid)
    self.scores[session_id] = convert(score, uint256) + 1
    if counted:
        if session.paid == 0:
            unpaid += 1
        rating_sum: uint256 = packing._rating_sum(tally) + convert(score, uint256)
        self.tallies[session.node_id] = packing._pack_rating(rating_sum, count + 1, unpaid)
        self._weigh(session.node_id, session.paid, convert(score, uint256))
    log SessionRated(
        session_id=session_id,
        node_id=session.node_id,
        client=session.client,
        service_id=session.service_id,
        score=score,
        paid=session.paid,
        counted=counted,
    )


@internal
def _weigh(node_id: uint256, paid: uint256, score: uint256):
    """
    @notice Adds a rating weighted by what its session paid. The weight stops growing at 2 ** 121, where 100 times it still
            fits its field.
    """
    weight: uint256 = self.weights[node_id]
    total: uint256 = packing._low(weight) + paid
    if paid > 0 and total < MAX_WEIGHT:
        self.weights[node_id] = packing._low_high(total, packing._high(weight) + score * paid)
