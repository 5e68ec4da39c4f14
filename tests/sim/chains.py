"""Real chains with the real contracts and a busy history: many events of many kinds, several of a kind in one block."""

import random
from contextlib import contextmanager

from eth_hash.auto import keccak

from tests.indexer.world import NO_CAP, World, abi_type, anvil, artifact

OPERATORS = range(1, 4)
CLIENTS = range(4, 9)
CHAIN_SEED = "a busy history"
GAS = hex(400_000)
TIMESTAMP = "1700000000"


class BusyWorld(World):
    """Grows by blocks of queued transactions. Equal calls on another chain with an equal clock give equal blocks."""

    def begin(self):
        """Deploy, and list a few services of each operator."""
        self.deploy()
        self.services = [(operator, *self.node(self.accounts[operator])) for operator in OPERATORS]
        self.opened, self.settled = [], []
        self.rpc.call("evm_setAutomine", [False])
        return self

    def grow(self, blocks, events, seed):
        """Mine so many blocks with about so many events each."""
        rng = random.Random(seed)
        for _ in range(blocks):
            self._block(rng, events)

    def on(self, url):
        """The same world at another address, for another thread."""
        other = BusyWorld(url)
        other.names, other.services = self.names, self.services
        other.opened, other.settled = list(self.opened), list(self.settled)
        return other

    def hash_at(self, tag="latest"):
        block = self.rpc.call("eth_getBlockByNumber", [tag if isinstance(tag, str) else hex(tag), False])
        return block["hash"]

    def _block(self, rng, events):
        for client, session_id in self.settled:
            self.transact(client, "ReputationLedger", "rate", session_id, rng.randrange(101))
        for operator, _, session_id in self.opened:
            self.transact(operator, "SessionManager", "settle", session_id, 0, 0, b"")
        left = events - len(self.settled) - 2 * len(self.opened)
        clients = rng.sample(CLIENTS, min(max(0, left // 4), len(CLIENTS)))
        for client in clients:
            self._open(client, rng.choice(self.services)[2])
        for _ in range(left - len(clients)):
            self._edit(rng)
        self.mine()
        self.settled = [(client, session_id) for _, client, session_id in self.opened]
        self.opened = self._read_opened() if clients else []

    def _edit(self, rng):
        operator, node_id, service_id = rng.choice(self.services)
        function, arguments = rng.choice(
            [
                ("set_price", (service_id, rng.randrange(1, 10**9))),
                ("set_active", (service_id, rng.random() < 0.8)),
                ("set_endpoint", (node_id, f"http://node-{rng.randrange(10**6)}.example")),
                ("set_metadata", (service_id, f"ipfs://{rng.randrange(10**6)}")),
                ("add_stake", (node_id, rng.randrange(1, 100))),
            ]
        )
        self.transact(operator, "NodeRegistry", function, *arguments)

    def _open(self, client, service_id):
        head = self.rpc.call("eth_getBlockByNumber", ["latest", False])
        nonce = int(self.view("SessionManager", "draws", self.accounts[client]), 16)
        choice = (0, nonce, 0, int(head["number"], 16), bytes.fromhex(head["hash"][2:]), NO_CAP, b"\x07" * 32)
        self.transact(client, "SessionManager", "open", service_id, 10**9, 10**9, 3600, self.key.address, choice)

    def _read_opened(self):
        head = hex(self.head())
        wanted = {"address": self.names["SessionManager"][0].address, "topics": [OPENED], "fromBlock": head}
        operators = {int(service_id): operator for operator, _, service_id in self.services}
        clients = {self.accounts[client].lower(): client for client in CLIENTS}
        found = [log["topics"] for log in self.rpc.call("eth_getLogs", [wanted | {"toBlock": head}])]
        return [
            (operators[int(service, 16)], clients["0x" + client[-40:]], bytes.fromhex(session[2:]))
            for _, session, client, service in found
        ]

    def transact(self, account, name, function, *arguments):
        """Queue a transaction; one that reverts is mined all the same."""
        contract, _ = self.names[name]
        data = contract.data(function, *arguments)
        sender = self.accounts[account]
        self.rpc.call("eth_sendTransaction", [{"from": sender, "to": contract.address, "data": data, "gas": GAS}])


def _topic(contract, event):
    entry = next(e for e in artifact(contract)["abi"] if e["type"] == "event" and e["name"] == event)
    return "0x" + keccak(f"{event}({','.join(map(abi_type, entry['inputs']))})".encode()).hex()


OPENED = _topic("SessionManager", "SessionOpened")


@contextmanager
def busy_chain(blocks, events, seed, *arguments, interval=1):
    """A chain of its own. `interval` is the time between two blocks, in seconds; 0 gives equal timestamps."""
    with anvil("--timestamp", TIMESTAMP, *arguments) as url:
        world = BusyWorld(url)
        world.rpc.call("anvil_setBlockTimestampInterval", [interval])
        world.begin()
        world.grow(blocks, events, seed)
        try:
            yield world
        finally:
            world.rpc.close()
