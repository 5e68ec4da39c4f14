# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title NodeRegistry
@license Apache-2.0
@notice Operators register nodes, stake on them, and list services by category. Everything that routing reads of a node
        or a service is a storage slot here, and every change of it is an event.
@dev    Nobody has a privilege over somebody else's node, but the court, which may slash it and hold its withdrawals. An
        empty court means that nobody may.
"""


from ethereum.ercs import IERC20
from .modules import labels
from .modules import packing
from .modules import token


struct Node:
    operator: address
    stake: uint256
    unbonding: uint256
    release_at: uint256
    holds: uint256
    max_concurrent: uint256
    capability_count: uint256
    endpoint: String[MAX_TEXT]


struct Service:
    node_id: uint256
    category_id: bytes32
    price: uint256
    active: bool
    metadata_uri: String[MAX_TEXT]


struct Listing:
    node_id: uint256
    operator: address
    category_id: bytes32
    price: uint256
    stake: uint256
    max_concurrent: uint256
    routable: bool


MAX_TEXT: constant(uint256) = 256
MAX_LABEL: constant(uint256) = 64
MAX_CAPABILITIES: constant(uint256) = 16
MAX_AMOUNT: constant(uint256) = 2 ** 128
MAX_PRICE: constant(uint256) = 2 ** 96
MAX_PERIOD: constant(uint256) = 2 ** 32

STAKE_TOKEN: immutable(IERC20)
MIN_STAKE: immutable(uint256)
STAKE_PER_SLOT: immutable(uint256)
UNBONDING_PERIOD: immutable(uint256)
COURT: immutable(address)

node_count: public(uint256)
service_count: public(uint256)
owners: HashMap[uint256, uint256]
stakes: HashMap[uint256, uint256]
endpoints: HashMap[uint256, String[MAX_TEXT]]
pending_operator: public(HashMap[uint256, address])
has_capability: public(HashMap[uint256, HashMap[bytes32, bool]])
listings: HashMap[uint256, uint256]
categories: HashMap[uint256, bytes32]
metadata: HashMap[uint256, String[MAX_TEXT]]
category_size: public(HashMap[bytes32, uint256])
category_service: public(HashMap[bytes32, HashMap[uint256, uint256]])
service_of: public(HashMap[uint256, HashMap[bytes32, uint256]])


event RegistryDeployed:
    stake_token: address
    min_stake: uint256
    stake_per_slot: uint256
    unbonding_period: uint256
    court: address


event NodeRegistered:
    node_id: indexed(uint256)
    operator: indexed(address)
    endpoint: String[MAX_TEXT]


event EndpointChanged:
    node_id: indexed(uint256)
    endpoint: String[MAX_TEXT]


event CapabilityChanged:
    node_id: indexed(uint256)
    capability: String[MAX_LABEL]
    enabled: bool


event NodeTransferred:
    node_id: indexed(uint256)
    operator: indexed(address)


event StakeChanged:
    node_id: indexed(uint256)
    stake: uint256
    unbonding: uint256
    release_at: uint256


event StakeSlashed:
    node_id: indexed(uint256)
    from_stake: uint256
    from_unbonding: uint256
    recipient: address


event ServiceListed:
    service_id: indexed(uint256)
    node_id: indexed(uint256)
    category_id: indexed(bytes32)
    category: String[MAX_LABEL]
    price: uint256
    metadata_uri: String[MAX_TEXT]


event PriceChanged:
    service_id: indexed(uint256)
    price: uint256


event ServiceStatusChanged:
    service_id: indexed(uint256)
    active: bool


event MetadataChanged:
    service_id: indexed(uint256)
    metadata_uri: String[MAX_TEXT]


@deploy
def __init__(stake_token: IERC20, min_stake: uint256, stake_per_slot: uint256, unbonding_period: uint256, court: address):
    """
    @notice Fixes the registry's parameters for ever.
    @param stake_token The token that operators stake.
    @param min_stake What a node must stake to be routable, in base units.
    @param stake_per_slot What one concurrent session needs in stake; above 0.
    @param unbonding_period Seconds between a request to unstake and its payment.
    @param court Who may slash and hold; empty for nobody.
    """
    assert stake_token.address != empty(address), "registry: empty stake token"
    assert stake_per_slot > 0, "registry: stake_per_slot is 0"
    assert stake_per_slot < MAX_AMOUNT and min_stake < MAX_AMOUNT, "registry: stake too large"
    assert unbonding_period < MAX_PERIOD, "registry: unbonding period too long"
    STAKE_TOKEN = stake_token
    MIN_STAKE = min_stake
    STAKE_PER_SLOT = stake_per_slot
    UNBONDING_PERIOD = unbonding_period
    COURT = court
    log RegistryDeployed(
        stake_token=stake_token.address,
        min_stake=min_stake,
        stake_per_slot=stake_per_slot,
        unbonding_period=unbonding_period,
        court=court,
    )


@external
def register_node(endpoint: String[MAX_TEXT], stake: uint256) -> uint256:
    """
    @notice Registers a node and stakes on it.
    @param endpoint Where agents reach the node.
    @param stake What to stake, in base units; it may be 0 and added later.
    @return The node's id; ids count from 1.
    """
    assert len(endpoint) > 0, "registry: empty endpoint"
    assert stake < MAX_AMOUNT, "registry: stake too large"
    node_id: uint256 = self.node_count + 1
    self.node_count = node_id
    self.owners[node_id] = packing._pack_owner(msg.sender, 0, 0, 0)
    self.endpoints[node_id] = endpoint
    log NodeRegistered(node_id=node_id, operator=msg.sender, endpoint=endpoint)
    self._write_stakes(node_id, stake, 0)
    token._pull(STAKE_TOKEN, msg.sender, stake)
    return node_id


@external
def set_endpoint(node_id: uint256, endpoint: String[MAX_TEXT]):
    """
    @notice Changes where agents reach a node.
    """
    self._only_operator(node_id)
    assert len(endpoint) > 0, "registry: empty endpoint"
    self.endpoints[node_id] = endpoint
    log EndpointChanged(node_id=node_id, endpoint=endpoint)


@external
def set_capability(node_id: uint256, capability: String[MAX_LABEL], enabled: bool):
    """
    @notice Adds or removes a capability string, such as `routing.v1`; a node has at most 16.
    """
    owner: uint256 = self._only_operator(node_id)
    assert labels._is_label(capability, False), "registry: malformed capability"
    capability_id: bytes32 = keccak256(capability)
    assert self.has_capability[node_id][capability_id] != enabled, "registry: capability unchanged"
    count: uint256 = packing._capabilities(owner)
    if enabled:
        assert count < MAX_CAPABILITIES, "registry: too many capabilities"
        count += 1
    else:
        count -= 1
    self.has_capability[node_id][capability_id] = enabled
    self._write_owner(node_id, packing._account(owner), packing._first(owner), packing._holds(owner), count)
    log CapabilityChanged(node_id=node_id, capability=capability, enabled=enabled)


@external
def transfer_node(node_id: uint256, operator: address):
    """
    @notice Offers a node, with its stake, to another operator, who takes it by `accept_node`.
    @dev    Running sessions keep the operator they were opened with. An empty operator takes the offer back.
    """
    self._only_operator(node_id)
    self.pending_operator[node_id] = operator


@external
def accept_node(node_id: uint256):
    """
    @notice Takes a node that was offered.
    """
    assert self.pending_operator[node_id] == msg.sender, "registry: not offered to you"
    owner: uint256 = self.owners[node_id]
    self.pending_operator[node_id] = empty(address)
    self._write_owner(
        node_id, msg.sender, packing._first(owner), packing._holds(owner), packing._capabilities(owner)
    )
    log NodeTransferred(node_id=node_id, operator=msg.sender)


@external
def add_stake(node_id: uint256, amount: uint256):
    """
    @notice Stakes more on a node. Its operator alone may.
    """
    self._only_operator(node_id)
    assert amount > 0, "registry: nothing to stake"
    stakes: uint256 = self.stakes[node_id]
    assert amount < MAX_AMOUNT - packing._low(stakes), "registry: stake too large"
    self._write_stakes(node_id, packing._low(stakes) + amount, packing._high(stakes))
    token._pull(STAKE_TOKEN, msg.sender, amount)


@external
def request_unstake(node_id: uint256, amount: uint256):
    """
    @notice Takes stake out of capacity and scoring at once. It is paid after the unbonding period and can be slashed
            until then.
    @dev    A further request starts the period anew for all that is unbonding, so that none is ever shortened.
    """
    owner: uint256 = self._only_operator(node_id)
    stakes: uint256 = self.stakes[node_id]
    stake: uint256 = packing._low(stakes)
    assert amount > 0, "registry: nothing to unstake"
    assert amount <= stake, "registry: more than the stake"
    unbonding: uint256 = packing._high(stakes) + amount
    assert unbonding < MAX_AMOUNT, "registry: unbonding too large"
    self._write_owner(
        node_id,
        msg.sender,
        block.timestamp + UNBONDING_PERIOD,
        packing._holds(owner),
        packing._capabilities(owner),
    )
    self._write_stakes(node_id, stake - amount, unbonding)


@external
def withdraw_stake(node_id: uint256):
    """
    @notice Pays what has unbonded to the node's operator, unless a dispute holds it.
    """
    owner: uint256 = self._only_operator(node_id)
    stakes: uint256 = self.stakes[node_id]
    amount: uint256 = packing._high(stakes)
    assert amount > 0, "registry: nothing unbonding"
    assert block.timestamp >= packing._first(owner), "registry: still unbonding"
    assert packing._holds(owner) == 0, "registry: held by a dispute"
    self._write_owner(node_id, msg.sender, 0, 0, packing._capabilities(owner))
    self._write_stakes(node_id, packing._low(stakes), 0)
    token._push(STAKE_TOKEN, msg.sender, amount)


@external
def list_service(
    node_id: uint256, category: String[MAX_LABEL], price: uint256, metadata_uri: String[MAX_TEXT]
) -> uint256:
    """
    @notice Lists a service of a node. A node has one listing per category, for ever: ten would multiply its weight.
    @param node_id The node.
    @param category What is served, such as `data:crypto-price`.
    @param price Per call, in base units of the payment token.
    @param metadata_uri Where a description is; it may be empty.
    @return The service's id; ids count from 1.
    """
    self._only_operator(node_id)
    assert labels._is_label(category, True), "registry: malformed category"
    category_id: bytes32 = keccak256(category)
    assert self.service_of[node_id][category_id] == 0, "registry: category already listed"
    service_id: uint256 = self.service_count + 1
    position: uint256 = self.category_size[category_id]
    self.service_count = service_id
    self.category_size[category_id] = position + 1
    self.category_service[category_id][position] = service_id
    self.service_of[node_id][category_id] = service_id
    self.categories[service_id] = category_id
    self.metadata[service_id] = metadata_uri
    self._write_listing(service_id, price, node_id, True)
    log ServiceListed(
        service_id=service_id,
        node_id=node_id,
        category_id=category_id,
        category=category,
        price=price,
        metadata_uri=metadata_uri,
    )
    return service_id


@external
def set_price(service_id: uint256, price: uint256):
    """
    @notice Changes a price. Running sessions keep theirs.
    """
    listing: uint256 = self._only_lister(service_id)
    self._write_listing(service_id, price, packing._node_of(listing), packing._is_active(listing))
    log PriceChanged(service_id=service_id, price=price)


@external
def set_active(service_id: uint256, active: bool):
    """
    @notice Pauses or resumes a service. A paused one takes no new sessions.
    """
    listing: uint256 = self._only_lister(service_id)
    self._write_listing(service_id, packing._low(listing), packing._node_of(listing), active)
    log ServiceStatusChanged(service_id=service_id, active=active)


@external
def set_metadata(service_id: uint256, metadata_uri: String[MAX_TEXT]):
    """
    @notice Changes where a service is described.
    """
    self._only_lister(service_id)
    self.metadata[service_id] = metadata_uri
    log MetadataChanged(service_id=service_id, metadata_uri=metadata_uri)


@external
def slash(node_id: uint256, amount: uint256) -> uint256:
    """
    @notice Takes stake, then what is unbonding, and pays the court. Slashing more than there is takes what there is.
    @return What was taken; 0 where there was nothing.
    """
    self._only_court(node_id)
    stakes: uint256 = self.stakes[node_id]
    from_stake: uint256 = min(amount, packing._low(stakes))
    from_unbonding: uint256 = min(amount - from_stake, packing._high(stakes))
    log StakeSlashed(node_id=node_id, from_stake=from_stake, from_unbonding=from_unbonding, recipient=COURT)
    self._write_stakes(node_id, packing._low(stakes) - from_stake, packing._high(stakes) - from_unbonding)
    taken: uint256 = from_stake + from_unbonding
    if taken > 0:
        token._push(STAKE_TOKEN, COURT, taken)
    return taken


@external
def hold(node_id: uint256):
    """
    @notice Stops a node's stake withdrawals while a dispute is open. Holds are counted.
    """
    owner: uint256 = self._only_court(node_id)
    self._write_owner(
        node_id,
        packing._account(owner),
        packing._first(owner),
        packing._holds(owner) + 1,
        packing._capabilities(owner),
    )


@external
def release(node_id: uint256):
    """
    @notice Takes one hold back.
    """
    owner: uint256 = self._only_court(node_id)
    assert packing._holds(owner) > 0, "registry: no hold"
    self._write_owner(
        node_id,
        packing._account(owner),
        packing._first(owner),
        packing._holds(owner) - 1,
        packing._capabilities(owner),
    )


@external
@view
def parameters() -> (address, uint256, uint256, uint256, address):
    """
    @notice The constructor's parameters: stake token, min_stake, stake_per_slot, unbonding_period, court.
    """
    return STAKE_TOKEN.address, MIN_STAKE, STAKE_PER_SLOT, UNBONDING_PERIOD, COURT


@external
@view
def nodes(node_id: uint256) -> Node:
    """
    @notice One node; all fields are empty for an id that does not exist.
    """
    owner: uint256 = self.owners[node_id]
    stakes: uint256 = self.stakes[node_id]
    return Node(
        operator=packing._account(owner),
        stake=packing._low(stakes),
        unbonding=packing._high(stakes),
        release_at=packing._first(owner),
        holds=packing._holds(owner),
        max_concurrent=packing._low(stakes) // STAKE_PER_SLOT,
        capability_count=packing._capabilities(owner),
        endpoint=self.endpoints[node_id],
    )


@external
@view
def services(service_id: uint256) -> Service:
    """
    @notice One service; all fields are empty for an id that does not exist.
    """
    listing: uint256 = self.listings[service_id]
    return Service(
        node_id=packing._node_of(listing),
        category_id=self.categories[service_id],
        price=packing._low(listing),
        active=packing._is_active(listing),
        metadata_uri=self.metadata[service_id],
    )


@external
@view
def listing_of(service_id: uint256) -> Listing:
    """
    @notice What opening a session and scoring read of a service and its node; all empty for an id that does not exist.
    """
    listing: uint256 = self.listings[service_id]
    node_id: uint256 = packing._node_of(listing)
    stake: uint256 = packing._low(self.stakes[node_id])
    return Listing(
        node_id=node_id,
        operator=packing._account(self.owners[node_id]),
        category_id=self.categories[service_id],
        price=packing._low(listing),
        stake=stake,
        max_concurrent=stake // STAKE_PER_SLOT,
        routable=packing._is_active(listing) and stake >= MIN_STAKE,
    )


@external
@view
def is_routable(service_id: uint256) -> bool:
    """
    @notice Says whether a service takes sessions: it is active, and its node has the minimum stake.
    """
    listing: uint256 = self.listings[service_id]
    stake: uint256 = packing._low(self.stakes[packing._node_of(listing)])
    return packing._is_active(listing) and stake >= MIN_STAKE


@internal
@view
def _only_operator(node_id: uint256) -> uint256:
    """
    @notice Asserts that the sender operates a node, and gives its owner word.
    """
    owner: uint256 = self.owners[node_id]
    assert owner != 0, "registry: unknown node"
    assert packing._account(owner) == msg.sender, "registry: not the operator"
    return owner


@internal
@view
def _only_lister(service_id: uint256) -> uint256:
    """
    @notice Asserts that the sender operates a service's node, and gives its listing word.
    """
    listing: uint256 = self.listings[service_id]
    assert listing != 0, "registry: unknown service"
    self._only_operator(packing._node_of(listing))
    return listing


@internal
@view
def _only_court(node_id: uint256) -> uint256:
    """
    @notice Asserts that the sender is the court and the node exists, and gives its owner word.
    """
    assert msg.sender == COURT, "registry: not the court"
    owner: uint256 = self.owners[node_id]
    assert owner != 0, "registry: unknown node"
    return owner


@internal
def _write_owner(node_id: uint256, operator: address, release_at: uint256, holds: uint256, capabilities: uint256):
    """
    @notice Writes a node's owner word.
    """
    self.owners[node_id] = packing._pack_owner(operator, release_at, holds, capabilities)


@internal
def _write_stakes(node_id: uint256, stake: uint256, unbonding: uint256):
    """
    @notice Writes a node's stake and says so.
    """
    self.stakes[node_id] = packing._low_high(stake, unbonding)
    release_at: uint256 = packing._first(self.owners[node_id])
    log StakeChanged(node_id=node_id, stake=stake, unbonding=unbonding, release_at=release_at)


@internal
def _write_listing(service_id: uint256, price: uint256, node_id: uint256, active: bool):
    """
    @notice Writes a service's listing word.
    """
    assert price < MAX_PRICE, "registry: price too large"
    self.listings[service_id] = packing._pack_listing(price, node_id, active)
