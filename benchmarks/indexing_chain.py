"""A chain of its own on which a market trades: the events that the indexing benchmarks read.

The real contracts on anvil, mining by hand, transactions in batches. A round is one block: sessions are opened, those
of some rounds ago are settled by voucher and rated, services change prices and nodes add stake. How long a session
lasts differs, so that rows end in the range that opened them as well as in later ones.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from coincurve import PrivateKey
from eth_abi.abi import encode
from eth_hash.auto import keccak

from indexer.deployment import Deployment
from indexer.events import SessionOpened, topic0
from tests.indexer.world import CHAIN_ID, NO_CAP, World, anvil

OPENS, PRICES, STAKES = 15, 10, 10
"""Calls of each kind in a round; every open is followed by a settlement and a rating."""
EVENTS_A_ROUND = 6 * OPENS + PRICES + STAKES
_OPERATORS, _NODES_EACH, _CLIENTS = 10, 5, 15
_LASTS = (1, 3, 8, 25)  # rounds from opening to settlement
_DEPOSIT, _PRICE, _PAID, _STAKE = 100, 10, 20, 10**6
_GAS = hex(500_000)
_VOUCHER = keccak(b"Voucher(bytes32 sessionId,uint256 amount,uint256 calls)")
_DOMAIN = keccak(b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")

Call = tuple[str, str, str, tuple[Any, ...]]
"""Account, contract, function, arguments."""


@dataclass(frozen=True, slots=True)
class TradedChain:
    """A chain that stands still."""

    url: str
    deployment: Deployment
    head: int


@contextmanager
def traded_chain(events: int) -> Iterator[TradedChain]:
    """Run anvil with a market that made about `events` events, until the block ends."""
    with running_market() as market:
        for _ in range(-(-events // EVENTS_A_ROUND)):
            market.trade()
        yield TradedChain(market.world.url, market.world.deployment(), market.world.head())


@contextmanager
def running_market(*options: str) -> Iterator["Market"]:
    """Run anvil, with further options, and a market that trades when it is told to, until the block ends."""
    accounts = 1 + _OPERATORS + _CLIENTS
    with anvil("--accounts", str(accounts), "--gas-limit", str(10**9), "--prune-history", *options) as url:
        world = World(url).deploy()
        try:
            yield Market(world)
        finally:
            world.rpc.close()


class Market:
    """Operators with services, and clients that use them, a round at a time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._operators = world.accounts[1 : 1 + _OPERATORS]
        self._clients = world.accounts[1 + _OPERATORS :]
        listed = [(operator, *self._list(operator, n)) for n in range(_NODES_EACH) for operator in self._operators]
        self._services = itertools.cycle([service_id for _, _, service_id in listed])
        self._priced = itertools.cycle([(operator, service_id) for operator, _, service_id in listed])
        self._staked = itertools.cycle([(operator, node_id) for operator, node_id, _ in listed])
        self._operator_of = {service_id: operator for operator, _, service_id in listed}
        self._key = PrivateKey(bytes(world.key.key))
        self._separator = _separator(world.names["SessionManager"][0].address)
        self._lasts = itertools.cycle(_LASTS)
        self._due: dict[int, list[Call]] = defaultdict(list)
        self._round = 0
        self._nonces = {account: self._count(account) for account in world.accounts}
        self._opened = dict.fromkeys(self._clients, 0)
        world.rpc.call("evm_setAutomine", [False])
        self.head = world.head()

    def trade(self) -> None:
        """Send a round and mine it."""
        self.send()
        self.mine()

    def send(self) -> None:
        """Send the transactions of the next round, to be mined together."""
        if self._round:
            for log in self._sessions_of(self.head):
                self._plan(log)
        self._round += 1
        self._send([*self._opens(), *self._due.pop(self._round, ()), *self._changes()])

    def mine(self) -> int:
        """Mine the round that was sent, and give its block's number."""
        self.world.mine()
        self.head += 1
        return self.head

    def _list(self, operator: str, number: int) -> tuple[int, int]:
        return self.world.node(operator, _STAKE, f"data:feed-{number}", _PRICE)

    def _count(self, account: str) -> int:
        return int(self.world.rpc.call("eth_getTransactionCount", [account, "latest"]), 16)

    def _opens(self) -> Iterator[Call]:
        snapshot = self.world.rpc.call("eth_getBlockByNumber", ["latest", False])
        place = (int(snapshot["number"], 16), bytes.fromhex(snapshot["hash"][2:]))
        for client in itertools.islice(itertools.cycle(self._clients), OPENS):
            choice = (1, self._opened[client], 0, *place, NO_CAP, keccak(client.encode()))
            self._opened[client] += 1
            terms = (next(self._services), _DEPOSIT, 10**6, 3600, self.world.key.address, choice)
            yield client, "SessionManager", "open", terms

    def _changes(self) -> Iterator[Call]:
        for _ in range(PRICES):
            operator, service_id = next(self._priced)
            yield operator, "NodeRegistry", "set_price", (service_id, _PRICE + self._round % 7)
        for _ in range(STAKES):
            operator, node_id = next(self._staked)
            yield operator, "NodeRegistry", "add_stake", (node_id, 1 + self._round)

    def _sessions_of(self, block: int) -> list[dict[str, Any]]:
        address = self.world.names["SessionManager"][0].address
        wanted = {"address": address, "topics": [topic0(SessionOpened)], "fromBlock": hex(block), "toBlock": hex(block)}
        logs = self.world.rpc.call("eth_getLogs", [wanted])
        if len(logs) != OPENS:
            raise RuntimeError(f"block {block} holds {len(logs)} opened sessions, not {OPENS}")
        return logs

    def _plan(self, log: dict[str, Any]) -> None:
        session_id, client, service_id = log["topics"][1:]
        raw = bytes.fromhex(session_id[2:])
        settled = self._round + next(self._lasts)
        operator = self._operator_of[int(service_id, 16)]
        voucher = (raw, _PAID, 2, self._voucher(raw))
        self._due[settled].append((operator, "SessionManager", "settle", voucher))
        rating = (raw, 60 + settled % 40)
        self._due[settled + 1].append(("0x" + client[-40:], "ReputationLedger", "rate", rating))

    def _voucher(self, session_id: bytes) -> bytes:
        struct = keccak(_VOUCHER + session_id + encode(["uint256", "uint256"], [_PAID, 2]))
        signature = self._key.sign_recoverable(keccak(b"\x19\x01" + self._separator + struct), hasher=None)
        return signature[:64] + bytes([27 + signature[64]])

    def _send(self, calls: list[Call]) -> None:
        sent = self.world.rpc.batch([("eth_sendTransaction", [self._transaction(*call)]) for call in calls])
        if not all(isinstance(answer, str) for answer in sent):
            raise RuntimeError("anvil took not every transaction")

    def _transaction(self, account: str, name: str, function: str, arguments: tuple[Any, ...]) -> dict[str, str]:
        contract, _ = self.world.names[name]
        nonce = self._nonces[account]
        self._nonces[account] += 1
        data = contract.data(function, *arguments)
        return {"from": account, "to": contract.address, "data": data, "gas": _GAS, "nonce": hex(nonce)}


def _separator(manager: str) -> bytes:
    types = ["bytes32", "bytes32", "bytes32", "uint256", "address"]
    return keccak(encode(types, [_DOMAIN, keccak(b"Counterfoil"), keccak(b"1"), CHAIN_ID, manager]))
