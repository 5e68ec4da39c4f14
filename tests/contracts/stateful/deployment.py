"""One deployment of the suite in boa with its model beside it: every run starts from a copy."""

import pickle
from functools import cache

import boa
from eth_account import Account
from eth_utils import keccak

from tests.contracts.stateful.chain import Chain, contract, helper
from tests.model.core import EMPTY, World
from tests.model.court import Court
from tests.model.ledgers import Experience, Reputation
from tests.model.registry import Registry
from tests.model.sessions import Manager
from tests.model.suite import Suite, frequent_views
from tests.model.token import Token

START, FIRST_BLOCK = 1_000_000, 100
MIN_STAKE, STAKE_PER_SLOT, BOND = 1_000, 500, 7
CHALLENGE_PERIOD, MAX_DURATION, MAX_SNAPSHOT_AGE = 100, 1_000, 5
DISPUTE_WINDOW, RESOLVE_WINDOW = 200, 300
UNBONDING_PERIOD = CHALLENGE_PERIOD + MAX_DURATION + DISPUTE_WINDOW + 1
NAMES = ("operator", "rival", "whale", "client", "guest", "rich client", "arbiter", "relayer")
RICH = ("whale", "rich client")
PURSE, FORTUNE = 100_000, 2**150
CATEGORY, OTHER_CATEGORY = "data:x", "data:y"
STAKES, PRICES = (2_000, 3_000, 5_000), (10, 12, 14)

PEOPLE = {name: Account.from_key(keccak(text=name)) for name in NAMES}
KEYS = {account.address: account.key for account in PEOPLE.values()}
OPERATORS = tuple(PEOPLE[name].address for name in NAMES[:3])
CLIENTS = tuple(PEOPLE[name].address for name in NAMES[3:6])
ARBITER, RELAYER = (PEOPLE[name].address for name in NAMES[6:])


def deploy_parts(one_token, bond=BOND):
    """Deploy everything; the registry is told where the court will be."""
    stake = helper("ModeToken")
    payment = stake if one_token else helper("ModeToken")
    court = boa.env.generate_address()
    registry = contract("NodeRegistry", stake, MIN_STAKE, STAKE_PER_SLOT, UNBONDING_PERIOD, court)
    periods = (CHALLENGE_PERIOD, MAX_DURATION, MAX_SNAPSHOT_AGE)
    manager = contract("SessionManager", payment, registry, *periods)
    reputation, experience = contract("ReputationLedger", manager), contract("ExperienceLedger", manager)
    windows = (bond, DISPUTE_WINDOW, RESOLVE_WINDOW)
    return {
        "stake": stake,
        "payment": payment,
        "registry": registry,
        "manager": manager,
        "reputation": reputation,
        "experience": experience,
        "lens": contract("RoutingLens", registry, manager, reputation),
        "court": contract("DisputeCourt", registry, manager, ARBITER, *windows, override_address=court),
    }


def model_of(parts, wallet, bond=BOND):
    """The model of a deployment that nobody has used."""
    at = {name: str(part.address) for name, part in parts.items()}
    world = World(boa.env.evm.patch.chain_id, START, FIRST_BLOCK, frozenset(KEYS))
    contracts = frozenset(at[name] for name in ("registry", "manager", "court"))
    stake = Token(at["stake"], world, contracts)
    payment = stake if at["payment"] == at["stake"] else Token(at["payment"], world, contracts)
    registry = Registry(at["registry"], world, stake, MIN_STAKE, STAKE_PER_SLOT, UNBONDING_PERIOD, at["court"])
    periods = (CHALLENGE_PERIOD, MAX_DURATION, MAX_SNAPSHOT_AGE)
    manager = Manager(at["manager"], world, payment, registry, *periods)
    windows = (bond, DISPUTE_WINDOW, RESOLVE_WINDOW)
    return Suite(
        world=world,
        accounts=(*KEYS, wallet),
        stake=stake,
        payment=payment,
        registry=registry,
        manager=manager,
        reputation=Reputation(at["reputation"], world, manager),
        experience=Experience(at["experience"], world, manager),
        court=Court(at["court"], world, stake, registry, manager, *windows, ARBITER),
    )


def first_calls(model):
    """Tokens for everybody, and three nodes with a service each; one serves a second category."""
    for token in ("stake",) if model.stake is model.payment else ("stake", "payment"):
        for account in model.accounts:
            rich = account in {PEOPLE[name].address for name in RICH}
            yield token, "mint", EMPTY, account, FORTUNE if rich else PURSE
    for node_id, (operator, stake, price) in enumerate(zip(OPERATORS, STAKES, PRICES, strict=True), 1):
        yield "registry", "register_node", operator, "http://node", stake
        yield "registry", "list_service", operator, node_id, CATEGORY, price, "ipfs://service"
    yield "registry", "list_service", OPERATORS[1], 2, OTHER_CATEGORY, 7, ""


@cache
def deployed(one_token, bond=BOND):
    """A chain with the contracts, deployed once for all runs, the pickled model of them, and the wallet's address."""
    parts = deploy_parts(one_token, bond)
    wallet = str(helper("KeyWallet").address)
    model, chain = model_of(parts, wallet, bond), Chain(parts)
    for part, function, sender, *arguments in first_calls(model):
        assert chain.send(part, function, sender, *arguments).reason is None
        getattr(getattr(model, part), function)(sender, *arguments)
    chain.forget_what_changed()
    for view in frequent_views(model):
        chain.ask(view)
    return chain, pickle.dumps(model), wallet


def fresh(one_token, bond=BOND):
    """The chain of a deployment as it was deployed, its model, and the address of the wallet contract."""
    chain, model, wallet = deployed(one_token, bond)
    return chain.copy(), pickle.loads(model), wallet
