# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title DisputeCourt
@license Apache-2.0
@notice A client that paid for nothing disputes its session, with a bond, and the arbiter decides. An award is slashed from
        the stake of the node that the session was with, and from nothing else.
@dev    The arbiter is the only privileged account of the whole suite. It can slash what a client claimed of a node that
        has an open dispute, and nothing more; but it can be that client, so it is trusted with the stake of every
        routable node. An unresolved dispute can be dropped by anyone after the resolve window.
        Bonds and awards are credits in the registry's stake token.
"""


from ethereum.ercs import IERC20
from .interfaces import INodeRegistry
from .interfaces import ISessionManager
from .modules import packing
from .modules import token


struct Dispute:
    session_id: bytes32
    node_id: uint256
    client: address
    operator: address
    claim: uint256
    opened_at: uint256
    status: uint8


OPEN: constant(uint8) = 1
UPHELD: constant(uint8) = 2
REFUSED: constant(uint8) = 3
DROPPED: constant(uint8) = 4
MAX_AMOUNT: constant(uint256) = 2 ** 128
MAX_PERIOD: constant(uint256) = 2 ** 32
MAX_TEXT: constant(uint256) = 256

REGISTRY: immutable(INodeRegistry)
SESSION_MANAGER: immutable(ISessionManager)
STAKE_TOKEN: immutable(IERC20)
BOND: immutable(uint256)
DISPUTE_WINDOW: immutable(uint256)
RESOLVE_WINDOW: immutable(uint256)

arbiter: public(address)
pending_arbiter: public(address)
dispute_count: public(uint256)
dispute_of: public(HashMap[bytes32, uint256])
credit_of: public(HashMap[address, uint256])
session_of: HashMap[uint256, bytes32]
cases: HashMap[uint256, uint256]


event CourtDeployed:
    registry: address
    session_manager: address
    bond: uint256
    dispute_window: uint256
    resolve_window: uint256


event ArbiterChanged:
    arbiter: indexed(address)


event DisputeOpened:
    dispute_id: indexed(uint256)
    session_id: indexed(bytes32)
    node_id: indexed(uint256)
    client: address
    claim: uint256
    bond: uint256
    evidence: String[MAX_TEXT]


event DisputeResolved:
    dispute_id: indexed(uint256)
    session_id: indexed(bytes32)
    node_id: indexed(uint256)
    status: uint8
    award: uint256


event CourtCredited:
    account: indexed(address)
    amount: uint256


event CourtWithdrawn:
    account: indexed(address)
    to: address
    amount: uint256


@deploy
def __init__(
    registry: INodeRegistry,
    session_manager: ISessionManager,
    arbiter: address,
    bond: uint256,
    dispute_window: uint256,
    resolve_window: uint256,
):
    """
    @notice Fixes the court's parameters, and names the first arbiter.
    @dev    The registry must have been deployed with this court's address. Stake must stay slashable from the last moment
            of a session until its dispute is open, so the unbonding period is longer than all windows before that.
    @param registry Whose nodes are slashed; its court is this contract.
    @param session_manager Whose sessions are disputed; its registry is `registry`.
    @param arbiter Who decides.
    @param bond What a dispute costs if it is refused, in base units of the stake token.
    @param dispute_window Seconds after a settlement in which it can be disputed.
    @param resolve_window Seconds in which the arbiter decides; then anyone may drop the dispute.
    """
    stake_token: address = empty(address)
    court: address = empty(address)
    min_stake: uint256 = 0
    stake_per_slot: uint256 = 0
    unbonding_period: uint256 = 0
    stake_token, min_stake, stake_per_slot, unbonding_period, court = staticcall registry.parameters()
    payment_token: address = empty(address)
    manager_registry: address = empty(address)
    challenge_period: uint256 = 0
    max_duration: uint256 = 0
    max_snapshot_age: uint256 = 0
    payment_token, manager_registry, challenge_period, max_duration, max_snapshot_age = (
        staticcall session_manager.parameters()
    )
    assert court == self, "court: registry names another court"
    assert manager_registry == registry.address, "court: sessions of another registry"
    assert arbiter != empty(address), "court: empty arbiter"
    assert bond < MAX_AMOUNT, "court: bond too large"
    assert dispute_window > 0 and dispute_window < MAX_PERIOD, "court: dispute window out of range"
    assert resolve_window > 0 and resolve_window < MAX_PERIOD, "court: resolve window out of range"
    assert unbonding_period > max_duration + challenge_period + dispute_window, "court: unbonding period too short"
    REGISTRY = registry
    SESSION_MANAGER = session_manager
    STAKE_TOKEN = IERC20(stake_token)
    BOND = bond
    DISPUTE_WINDOW = dispute_window
    RESOLVE_WINDOW = resolve_window
    self.arbiter = arbiter
    log CourtDeployed(
        registry=registry.address,
        session_manager=session_manager.address,
        bond=bond,
        dispute_window=dispute_window,
        resolve_window=resolve_window,
    )
    log ArbiterChanged(arbiter=arbiter)


@external
def open_dispute(session_id: bytes32, claim: uint256, evidence: String[MAX_TEXT]) -> uint256:
    """
    @notice Disputes a settled session, once. Its client alone may, within the dispute window, and posts the bond.
    @param session_id The session.
    @param claim What the client asks for, in base units of the stake token; an award is never more.
    @param evidence Where the evidence is.
    @return The dispute's id; ids count from 1.
    """
    session: ISessionManager.Settlement = staticcall SESSION_MANAGER.settlement_of(session_id)
    assert session.settled, "court: session not settled"
    assert session.client == msg.sender, "court: not the client"
    assert block.timestamp < session.settled_at + DISPUTE_WINDOW, "court: dispute window is over"
    assert self.dispute_of[session_id] == 0, "court: already disputed"
    assert claim > 0 and claim < MAX_AMOUNT, "court: claim out of range"
    dispute_id: uint256 = self.dispute_count + 1
    self.dispute_count = dispute_id
    self.dispute_of[session_id] = dispute_id
    self.session_of[dispute_id] = session_id
    self.cases[dispute_id] = packing._pack_dispute(claim, block.timestamp, OPEN)
    log DisputeOpened(
        dispute_id=dispute_id,
        session_id=session_id,
        node_id=session.node_id,
        client=msg.sender,
        claim=claim,
        bond=BOND,
        evidence=evidence,
    )
    extcall REGISTRY.hold(session.node_id)
    token._pull(STAKE_TOKEN, msg.sender, BOND)
    return dispute_id


@external
def resolve(session_id: bytes32, award: uint256):
    """
    @notice Decides the open dispute of a session. The arbiter alone may, within the resolve window.
    @param session_id The session that was judged.
    @param award What the node is slashed for the client, at most the claim; 0 refuses, and the operator gets the bond.
    @dev    A node that has less than the award left pays what it has. The session is named and not the dispute's number:
            a reorg that swaps two disputes swaps their numbers, and a decision that is on its way must not slash a node
            that nobody judged.
    """
    assert msg.sender == self.arbiter, "court: not the arbiter"
    dispute_id: uint256 = self.dispute_of[session_id]
    dispute: Dispute = self._only_open(dispute_id)
    assert block.timestamp < dispute.opened_at + RESOLVE_WINDOW, "court: resolve window is over"
    assert award <= dispute.claim, "court: award above the claim"
    if award == 0:
        self._close(dispute_id, dispute, REFUSED)
        self._report(dispute_id, dispute, REFUSED, 0)
        self._credit(dispute.operator, BOND)
    else:
        self._close(dispute_id, dispute, UPHELD)
        arrived: uint256 = self._slash(dispute.node_id, award)
        self._report(dispute_id, dispute, UPHELD, arrived)
        self._credit(dispute.client, BOND + arrived)


@external
def drop(dispute_id: uint256):
    """
    @notice Ends a dispute that the arbiter left alone. Anyone may, after the resolve window; the client has its bond back.
    """
    dispute: Dispute = self._only_open(dispute_id)
    assert block.timestamp >= dispute.opened_at + RESOLVE_WINDOW, "court: resolve window runs"
    self._close(dispute_id, dispute, DROPPED)
    self._report(dispute_id, dispute, DROPPED, 0)
    self._credit(dispute.client, BOND)


@external
def withdraw(to: address) -> uint256:
    """
    @notice Pays the sender's whole credit to an account of its choice.
    @param to Who is paid.
    @return What was paid, in base units.
    """
    amount: uint256 = self.credit_of[msg.sender]
    assert amount > 0, "court: no credit"
    assert to != empty(address) and to != self, "court: bad receiver"
    self.credit_of[msg.sender] = 0
    log CourtWithdrawn(account=msg.sender, to=to, amount=amount)
    token._push(STAKE_TOKEN, to, amount)
    return amount


@external
def offer_arbiter(arbiter: address):
    """
    @notice Offers the office to another account, which takes it by `accept_arbiter`. An empty one takes the offer back.
    """
    assert msg.sender == self.arbiter, "court: not the arbiter"
    self.pending_arbiter = arbiter


@external
def accept_arbiter():
    """
    @notice Takes the office that was offered.
    """
    assert msg.sender == self.pending_arbiter, "court: not offered to you"
    self.arbiter = msg.sender
    self.pending_arbiter = empty(address)
    log ArbiterChanged(arbiter=msg.sender)


@external
@view
def parameters() -> (address, address, address, uint256, uint256, uint256):
    """
    @notice What was fixed: registry, session manager, stake token, bond, dispute_window, resolve_window.
    """
    return REGISTRY.address, SESSION_MANAGER.address, STAKE_TOKEN.address, BOND, DISPUTE_WINDOW, RESOLVE_WINDOW


@external
@view
def disputes(dispute_id: uint256) -> Dispute:
    """
    @notice One dispute; all fields are empty for an id that does not exist.
    """
    return self._dispute(dispute_id)


@internal
@view
def _dispute(dispute_id: uint256) -> Dispute:
    """
    @notice Reads a dispute. Who was in its session is read from there: a settled session never changes.
    """
    word: uint256 = self.cases[dispute_id]
    if word == 0:
        return empty(Dispute)
    session_id: bytes32 = self.session_of[dispute_id]
    session: ISessionManager.Settlement = staticcall SESSION_MANAGER.settlement_of(session_id)
    return Dispute(
        session_id=session_id,
        node_id=session.node_id,
        client=session.client,
        operator=session.operator,
        claim=packing._low(word),
        opened_at=packing._opened_at(word),
        status=packing._dispute_status(word),
    )


@internal
@view
def _only_open(dispute_id: uint256) -> Dispute:
    """
    @notice Asserts that a dispute is open, and gives it.
    """
    dispute: Dispute = self._dispute(dispute_id)
    assert dispute.status == OPEN, "court: not open"
    return dispute


@internal
def _close(dispute_id: uint256, dispute: Dispute, status: uint8):
    """
    @notice Ends a dispute and lets the node's stake go.
    """
    self.cases[dispute_id] = packing._pack_dispute(dispute.claim, dispute.opened_at, status)
    extcall REGISTRY.release(dispute.node_id)


@internal
def _report(dispute_id: uint256, dispute: Dispute, status: uint8, award: uint256):
    """
    @notice Says how a dispute ended.
    """
    log DisputeResolved(
        dispute_id=dispute_id, session_id=dispute.session_id, node_id=dispute.node_id, status=status, award=award
    )


@internal
def _slash(node_id: uint256, award: uint256) -> uint256:
    """
    @notice Slashes a node, and gives what arrived of it: a token that starts to take a fee must not have other people's
            bonds pay for it.
    """
    held: uint256 = staticcall STAKE_TOKEN.balanceOf(self)
    taken: uint256 = extcall REGISTRY.slash(node_id, award)
    return min(taken, staticcall STAKE_TOKEN.balanceOf(self) - held)


@internal
def _credit(account: address, amount: uint256):
    """
    @notice Owes an amount to an account.
    """
    if amount > 0:
        self.credit_of[account] += amount
        log CourtCredited(account=account, amount=amount)
