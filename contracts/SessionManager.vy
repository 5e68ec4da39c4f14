# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title SessionManager
@license Apache-2.0
@notice Clients open sessions with the service they chose and the draw that chose it; operators are paid by cumulative
        vouchers; each session is settled exactly once.
@dev    No owner, no pause, no upgrade. The token's balance is always the sum of the deposits held and the credits owed,
        or more where somebody sent tokens by mistake. Payouts and refunds are credits, so that a recipient whom the
        token refuses locks nobody else's money.
"""


from ethereum.ercs import IERC20
from .interfaces import INodeRegistry
from .modules import choices
from .modules import packing
from .modules import signatures
from .modules import token


struct Session:
    client: address
    operator: address
    signer: address
    service_id: uint256
    node_id: uint256
    price: uint256
    deposit: uint256
    expires_at: uint256
    closes_at: uint256
    status: uint8
    paid: uint256
    calls: uint256
    settled_at: uint256


struct Settlement:
    client: address
    operator: address
    service_id: uint256
    node_id: uint256
    settled: bool
    settled_at: uint256
    paid: uint256
    calls: uint256


UNKNOWN: constant(uint256) = 0
OPEN: constant(uint256) = 1
CLOSING: constant(uint256) = 2
SETTLED: constant(uint256) = 3
MAX_AMOUNT: constant(uint256) = 2 ** 128
MAX_COUNT: constant(uint256) = 2 ** 32
BLOCK_HASHES: constant(uint256) = 256
TERMS_TYPE_HASH: constant(bytes32) = keccak256("Counterfoil open_with_authorization v1")
VOUCHER_TYPE_HASH: constant(bytes32) = keccak256("Voucher(bytes32 sessionId,uint256 amount,uint256 calls)")

PAYMENT_TOKEN: immutable(IERC20)
REGISTRY: immutable(INodeRegistry)
CHALLENGE_PERIOD: immutable(uint256)
MAX_DURATION: immutable(uint256)
MAX_SNAPSHOT_AGE: immutable(uint256)

active_sessions: public(HashMap[uint256, uint256])
credit_of: public(HashMap[address, uint256])
latest_draw: HashMap[address, uint256]
buyers: HashMap[bytes32, uint256]
sellers: HashMap[bytes32, uint256]
states: HashMap[bytes32, uint256]
signers: HashMap[bytes32, address]


event ManagerDeployed:
    payment_token: address
    registry: address
    challenge_period: uint256
    max_duration: uint256
    max_snapshot_age: uint256


event SessionOpened:
    session_id: indexed(bytes32)
    client: indexed(address)
    service_id: indexed(uint256)
    node_id: uint256
    operator: address
    signer: address
    price: uint256
    max_price: uint256
    deposit: uint256
    expires_at: uint256
    policy: uint8
    nonce: uint256
    attempt: uint256
    snapshot_block: uint256
    snapshot_hash: bytes32
    draw_seed: bytes32
    price_cap: uint256
    decision: bytes32


event SessionToppedUp:
    session_id: indexed(bytes32)
    deposit: uint256


event CloseRequested:
    session_id: indexed(bytes32)
    closes_at: uint256


event SessionSettled:
    session_id: indexed(bytes32)
    node_id: indexed(uint256)
    client: indexed(address)
    paid: uint256
    refunded: uint256
    calls: uint256


event Credited:
    account: indexed(address)
    amount: uint256


event CreditSpent:
    account: indexed(address)
    session_id: indexed(bytes32)
    amount: uint256


event CreditWithdrawn:
    account: indexed(address)
    to: address
    amount: uint256


@deploy
def __init__(
    payment_token: IERC20,
    registry: INodeRegistry,
    challenge_period: uint256,
    max_duration: uint256,
    max_snapshot_age: uint256,
):
    """
    @notice Fixes the parameters for ever.
    @param payment_token The token that sessions are paid in.
    @param registry The registry whose services are opened.
    @param challenge_period Seconds that an operator has to settle after a close is requested or a session expires.
    @param max_duration Seconds that a session may run at the most.
    @param max_snapshot_age Blocks that a snapshot may be old at an open; 1 to 256.
    """
    assert payment_token.address != empty(address), "sessions: empty payment token"
    assert registry.address != empty(address), "sessions: empty registry"
    assert challenge_period > 0 and challenge_period < MAX_COUNT, "sessions: challenge period out of range"
    assert max_duration > 0 and max_duration < MAX_COUNT, "sessions: max duration out of range"
    assert max_snapshot_age > 0 and max_snapshot_age <= BLOCK_HASHES, "sessions: snapshot age out of range"
    PAYMENT_TOKEN = payment_token
    REGISTRY = registry
    CHALLENGE_PERIOD = challenge_period
    MAX_DURATION = max_duration
    MAX_SNAPSHOT_AGE = max_snapshot_age
    log ManagerDeployed(
        payment_token=payment_token.address,
        registry=registry.address,
        challenge_period=challenge_period,
        max_duration=max_duration,
        max_snapshot_age=max_snapshot_age,
    )


@external
def open(
    service_id: uint256,
    deposit: uint256,
    max_price: uint256,
    duration: uint256,
    signer: address,
    choice: choices.Choice,
) -> bytes32:
    """
    @notice Opens a session with the service that the client chose, and commits to how it was chosen.
    @param service_id The service.
    @param deposit What vouchers may reach, in base units: at least one call. The client's credit is spent first.
    @param max_price The highest price that the client accepts, whatever the guard said.
    @param duration Seconds until the session expires.
    @param signer Whose key signs vouchers; the client's own when empty. A wallet contract must name a key.
    @param choice The draw: policy, the client's draw number, attempt, snapshot, soft cap (2 ** 256 - 1 for none), and
           the digest of the receipt.
    @return The session's id. After a reorg the same choice of the same service, node, price and signer has it again,
            whatever its deposit, duration and operator.
    """
    session_id: bytes32 = self._open(msg.sender, service_id, deposit, max_price, duration, signer, choice)
    self._take(msg.sender, session_id, deposit)
    return session_id


@external
def open_with_authorization(
    client: address,
    service_id: uint256,
    deposit: uint256,
    max_price: uint256,
    duration: uint256,
    signer: address,
    choice: choices.Choice,
    authorization: token.Authorization,
    signature: Bytes[token.MAX_SIGNATURE],
) -> bytes32:
    """
    @notice Opens a session for a client that pays no gas: it signed an EIP-3009 authorisation whose nonce is the hash of
            all these terms, so that nothing can be changed on the way. Anyone may carry it here.
    @param client Who opens and pays.
    @param service_id As in `open`.
    @param deposit Taken from the client's credit, to which the authorised amount is added first.
    @param max_price As in `open`.
    @param duration As in `open`.
    @param signer As in `open`.
    @param choice As in `open`.
    @param authorization The amount, which may be 0 where credit is enough, and its times of validity.
    @param signature The client's, over the token's `ReceiveWithAuthorization` with this contract as receiver.
    @return The session's id.
    """
    nonce: bytes32 = self._terms_hash(client, service_id, deposit, max_price, duration, signer, choice)
    token._pull_authorized(PAYMENT_TOKEN, client, authorization, nonce, signature)
    self._credit(client, authorization.amount)
    session_id: bytes32 = self._open(client, service_id, deposit, max_price, duration, signer, choice)
    assert self.credit_of[client] >= deposit, "sessions: authorised less than the deposit"
    self._take(client, session_id, deposit)
    return session_id


@external
def top_up(session_id: bytes32, amount: uint256):
    """
    @notice Adds to an open session's deposit. Anyone may, from credit first.
    """
    state: uint256 = self._only_status(session_id, OPEN)
    assert amount > 0, "sessions: nothing to add"
    assert amount < MAX_AMOUNT - packing._low(state), "sessions: deposit too large"
    deposit: uint256 = packing._low(state) + amount
    self.states[session_id] = packing._pack_state(
        deposit, 0, packing._expires_at(state), 0, OPEN, packing._is_keyed(state)
    )
    log SessionToppedUp(session_id=session_id, deposit=deposit)
    self._take(msg.sender, session_id, amount)


@external
def settle(session_id: bytes32, amount: uint256, calls: uint256, signature: Bytes[65]):
    """
    @notice Settles a session by its last voucher. Its operator alone may, until somebody ended it.
    @param session_id The session.
    @param amount What all calls cost together: at most the deposit, never less than that instead.
    @param calls How many calls were served.
    @param signature The session key's signature over the voucher; empty to settle at zero.
    """
    state: uint256 = self.states[session_id]
    assert packing._account(self.sellers[session_id]) == msg.sender, "sessions: not the operator"
    assert packing._status(state) != SETTLED, "sessions: already settled"
    assert amount <= packing._low(state), "sessions: voucher above deposit"
    assert calls < MAX_COUNT, "sessions: too many calls"
    if len(signature) > 0 or amount > 0 or calls > 0:
        signer: address = self._signer_of(session_id, state)
        struct_hash: bytes32 = keccak256(abi_encode(VOUCHER_TYPE_HASH, session_id, amount, calls))
        assert signatures._recover(signatures._digest(struct_hash), signature) == signer, "sessions: bad voucher"
    self._end(session_id, state, amount, calls)


@external
def request_close(session_id: bytes32):
    """
    @notice Starts the challenge period, after which anyone may end the session. Its client alone may.
    """
    state: uint256 = self._only_status(session_id, OPEN)
    assert packing._account(self.buyers[session_id]) == msg.sender, "sessions: not the client"
    closes_at: uint256 = block.timestamp + CHALLENGE_PERIOD
    self.states[session_id] = packing._pack_state(
        packing._low(state), 0, packing._expires_at(state), closes_at, CLOSING, packing._is_keyed(state)
    )
    log CloseRequested(session_id=session_id, closes_at=closes_at)


@external
def finish_close(session_id: bytes32):
    """
    @notice Ends a session at zero once the challenge period has passed. Anyone may.
    """
    state: uint256 = self._only_status(session_id, CLOSING)
    assert block.timestamp >= packing._turns_at(state), "sessions: challenge period runs"
    self._end(session_id, state, 0, 0)


@external
def expire(session_id: bytes32):
    """
    @notice Ends a session at zero once its time and the challenge period have passed. Anyone may.
    """
    state: uint256 = self.states[session_id]
    status: uint256 = packing._status(state)
    assert status == OPEN or status == CLOSING, "sessions: not open"
    assert block.timestamp >= packing._expires_at(state) + CHALLENGE_PERIOD, "sessions: not expired"
    self._end(session_id, state, 0, 0)


@external
def withdraw(to: address) -> uint256:
    """
    @notice Pays the sender's whole credit to an account of its choice.
    @param to Who is paid.
    @return What was paid, in base units.
    """
    amount: uint256 = self.credit_of[msg.sender]
    assert amount > 0, "sessions: no credit"
    assert to != empty(address) and to != self, "sessions: bad receiver"
    self.credit_of[msg.sender] = 0
    log CreditWithdrawn(account=msg.sender, to=to, amount=amount)
    token._push(PAYMENT_TOKEN, to, amount)
    return amount


@external
@view
def parameters() -> (address, address, uint256, uint256, uint256):
    """
    @notice The constructor's parameters: payment token, registry, challenge_period, max_duration, max_snapshot_age.
    """
    return PAYMENT_TOKEN.address, REGISTRY.address, CHALLENGE_PERIOD, MAX_DURATION, MAX_SNAPSHOT_AGE


@external
@view
def draws(client: address) -> uint256:
    """
    @notice How many draws a client has started: the nonce of its next one.
    """
    return packing._draws(self.latest_draw[client])


@external
@view
def sessions(session_id: bytes32) -> Session:
    """
    @notice One session; all fields are empty for an id that does not exist. `deposit` is what is held: 0 once settled;
            `closes_at` is 0 unless a close was requested and the session not settled yet.
    """
    buyer: uint256 = self.buyers[session_id]
    seller: uint256 = self.sellers[session_id]
    state: uint256 = self.states[session_id]
    status: uint256 = packing._status(state)
    deposit: uint256 = packing._low(state)
    closes_at: uint256 = packing._turns_at(state)
    paid: uint256 = 0
    settled_at: uint256 = 0
    if status == SETTLED:
        paid = deposit
        deposit = 0
        settled_at = closes_at
        closes_at = 0
    return Session(
        client=packing._account(buyer),
        operator=packing._account(seller),
        signer=self._signer_of(session_id, state),
        service_id=packing._first(seller),
        node_id=packing._second(seller),
        price=packing._price(buyer),
        deposit=deposit,
        expires_at=packing._expires_at(state),
        closes_at=closes_at,
        status=convert(status, uint8),
        paid=paid,
        calls=packing._calls(state),
        settled_at=settled_at,
    )


@external
@view
def settlement_of(session_id: bytes32) -> Settlement:
    """
    @notice What a ledger asks about a session; `settled_at`, `paid` and `calls` count only once it is settled.
    """
    seller: uint256 = self.sellers[session_id]
    state: uint256 = self.states[session_id]
    return Settlement(
        client=packing._account(self.buyers[session_id]),
        operator=packing._account(seller),
        service_id=packing._first(seller),
        node_id=packing._second(seller),
        settled=packing._status(state) == SETTLED,
        settled_at=packing._turns_at(state),
        paid=packing._low(state),
        calls=packing._calls(state),
    )


@external
@view
def domain_separator() -> bytes32:
    """
    @notice The EIP-712 domain of vouchers.
    """
    return signatures._domain_separator()


@internal
@view
def _only_status(session_id: bytes32, status: uint256) -> uint256:
    """
    @notice Asserts a session's status, and gives its state word.
    """
    state: uint256 = self.states[session_id]
    held: uint256 = packing._status(state)
    assert held != UNKNOWN, "sessions: unknown session"
    if status == OPEN:
        assert held == OPEN, "sessions: not open"
    else:
        assert held == status, "sessions: close not requested"
    return state


@internal
@view
def _signer_of(session_id: bytes32, state: uint256) -> address:
    """
    @notice Whose key signs a session's vouchers: the client's, unless another was named.
    """
    if packing._is_keyed(state):
        return self.signers[session_id]
    return packing._account(self.buyers[session_id])


@internal
def _open(
    client: address,
    service_id: uint256,
    deposit: uint256,
    max_price: uint256,
    duration: uint256,
    signer: address,
    choice: choices.Choice,
) -> bytes32:
    """
    @notice Checks the terms and writes the session; its deposit is taken by the caller of this.
    """
    listing: INodeRegistry.Listing = staticcall REGISTRY.listing_of(service_id)
    assert listing.routable, "sessions: service not routable"
    assert listing.price <= max_price, "sessions: price above max_price"
    assert deposit >= listing.price, "sessions: deposit below price"
    assert deposit < MAX_AMOUNT, "sessions: deposit too large"
    assert duration > 0 and duration <= MAX_DURATION, "sessions: duration out of range"
    choices._check_snapshot(choice, MAX_SNAPSHOT_AGE)
    draw_seed: bytes32 = choices._seed(choice.snapshot_hash, client, choice.nonce, listing.category_id)
    self.latest_draw[client] = choices._next_draw(self.latest_draw[client], draw_seed, choice)
    session_signer: address = signer
    if signer == empty(address):
        session_signer = client
    keyed: bool = session_signer != client
    session_id: bytes32 = self._session_id(client, service_id, listing, session_signer, draw_seed, choice)
    assert self.states[session_id] == 0, "sessions: id already used"
    expires_at: uint256 = block.timestamp + duration
    self.buyers[session_id] = packing._pack_buyer(client, listing.price)
    self.sellers[session_id] = packing._pack_account(listing.operator, service_id, listing.node_id)
    self.states[session_id] = packing._pack_state(deposit, 0, expires_at, 0, OPEN, keyed)
    if keyed:
        self.signers[session_id] = session_signer
    self.active_sessions[listing.node_id] += 1
    log SessionOpened(
        session_id=session_id,
        client=client,
        service_id=service_id,
        node_id=listing.node_id,
        operator=listing.operator,
        signer=session_signer,
        price=listing.price,
        max_price=max_price,
        deposit=deposit,
        expires_at=expires_at,
        policy=choice.policy,
        nonce=choice.nonce,
        attempt=choice.attempt,
        snapshot_block=choice.snapshot_block,
        snapshot_hash=choice.snapshot_hash,
        draw_seed=draw_seed,
        price_cap=choice.price_cap,
        decision=choice.decision,
    )
    return session_id


@internal
@view
def _terms_hash(
    client: address,
    service_id: uint256,
    deposit: uint256,
    max_price: uint256,
    duration: uint256,
    signer: address,
    choice: choices.Choice,
) -> bytes32:
    """
    @notice Hashes all that a client agrees to, for this contract on this chain.
    """
    return keccak256(
        abi_encode(
            TERMS_TYPE_HASH, chain.id, self, client, service_id, deposit, max_price, duration, signer, choice
        )
    )


@internal
@view
def _session_id(
    client: address,
    service_id: uint256,
    listing: INodeRegistry.Listing,
    signer: address,
    draw_seed: bytes32,
    choice: choices.Choice,
) -> bytes32:
    """
    @notice Forms the id from the choice, its draw, what was chosen at which price, and who signs. Operator, deposit,
            max_price and duration are not in it: sessions on two branches that differ in nothing else have one id.
    """
    return keccak256(
        abi_encode(
            chain.id,
            self,
            client,
            service_id,
            listing.node_id,
            listing.price,
            signer,
            draw_seed,
            choice.policy,
            choice.nonce,
            choice.attempt,
            choice.snapshot_block,
            choice.price_cap,
            choice.decision,
        )
    )


@internal
def _take(payer: address, session_id: bytes32, amount: uint256):
    """
    @notice Takes a deposit: credit first, the rest from the token.
    """
    credit: uint256 = self.credit_of[payer]
    spent: uint256 = min(credit, amount)
    if spent > 0:
        self.credit_of[payer] = credit - spent
        log CreditSpent(account=payer, session_id=session_id, amount=spent)
    token._pull(PAYMENT_TOKEN, payer, amount - spent)


@internal
def _credit(account: address, amount: uint256):
    """
    @notice Owes an amount to an account.
    """
    if amount > 0:
        self.credit_of[account] += amount
        log Credited(account=account, amount=amount)


@internal
def _end(session_id: bytes32, state: uint256, paid: uint256, calls: uint256):
    """
    @notice Ends a session, once: the operator is owed what was paid, the client the rest.
    """
    seller: uint256 = self.sellers[session_id]
    client: address = packing._account(self.buyers[session_id])
    node_id: uint256 = packing._second(seller)
    refunded: uint256 = packing._low(state) - paid
    self.states[session_id] = packing._pack_state(
        paid, calls, packing._expires_at(state), block.timestamp, SETTLED, packing._is_keyed(state)
    )
    self.active_sessions[node_id] -= 1
    log SessionSettled(
        session_id=session_id, node_id=node_id, client=client, paid=paid, refunded=refunded, calls=calls
    )
    self._credit(packing._account(seller), paid)
    self._credit(client, refunded)
