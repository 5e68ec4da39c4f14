"""Nodes, stake and services."""

from hypothesis import strategies as st

from tests.contracts.stateful.choosing import AMOUNTS, mostly, one_of
from tests.contracts.stateful.deployment import CATEGORY, OTHER_CATEGORY
from tests.contracts.stateful.machine_base import MachineBase, action
from tests.model.core import EMPTY

TEXTS = st.sampled_from(["http://a", "ipfs://b", "x" * 256])
CAPABILITIES = st.sampled_from(["routing.v1", "routing-v2", "a", "0", "x" * 64])
CATEGORIES = st.sampled_from([CATEGORY, CATEGORY, OTHER_CATEGORY, "a:b.c-d", "x" * 64])
BAD_LABELS = st.sampled_from(["", "Upper", ".a", "-a", "a b", "a/b", "a_b", "a\n", "{", "`", ":a"])
PRICES = st.one_of(st.integers(0, 40), st.integers(0, 40), AMOUNTS)
STAKES = st.one_of(st.integers(0, 3_000), AMOUNTS)


class RegistryRules(MachineBase):
    """What operators do."""

    @action(2)
    def stake(self, data):
        """On a node that is there, or seldom on a new one."""
        amount = data.draw(STAKES, label="stake")
        if data.draw(st.integers(0, 3), label="3 registers") == 3:
            endpoint = mostly(data, TEXTS, st.just(""), "endpoint")
            self.driver.act("registry", "register_node", self.anyone(data), endpoint, amount)
            return
        node_id, operator = self.node(data)
        self.driver.act("registry", "add_stake", self.sender(data, *operator), node_id, amount)

    @action(4)
    def request_unstake(self, data):
        """Of any node, and often of one that waits already or is held: nothing is shortened by that."""
        node_id, operator = self.node(data)
        special = [i for i, node in self.model.registry.nodes.items() if node.unbonding or node.holds]
        if special and data.draw(st.booleans(), label="of a special one"):
            node_id = data.draw(st.sampled_from(special), label="special node")
            operator = [self.model.registry.nodes[node_id].operator]
        stake = self.model.registry.nodes[node_id].stake if operator else 0
        # A node of just the minimum is routable, one of a unit less is not.
        edges = st.sampled_from([max(stake - 1_000, 0), max(stake - 999, 0), stake])
        likely = st.one_of(st.integers(min(1, stake), stake), edges)
        amount = mostly(data, likely, st.sampled_from([0, stake + 1]), "amount")
        self.driver.act("registry", "request_unstake", self.sender(data, *operator), node_id, amount)

    @action(3, when=lambda self: any(node.holds and node.stake for node in self.model.registry.nodes.values()))
    def flee(self, data):
        """An operator takes stake out of a node that a dispute holds, and has to wait for the dispute's end."""
        held = [i for i, node in self.model.registry.nodes.items() if node.holds and node.stake]
        node_id = data.draw(st.sampled_from(held), label="held node")
        operator = self.model.registry.nodes[node_id].operator
        self.driver.act("registry", "request_unstake", operator, node_id, 1)
        release_at = self.model.registry.nodes[node_id].release_at
        self.act_around(release_at, "registry", "withdraw_stake", operator, node_id)

    @action(4, when=lambda self: any(node.unbonding for node in self.model.registry.nodes.values()))
    def withdraw_stake(self, data):
        """Of a node that waits for it, now or when its time comes."""
        nodes = self.model.registry.nodes
        unbonding = [i for i, node in nodes.items() if node.unbonding]
        held = [i for i in unbonding if nodes[i].holds]
        node_id = one_of(data, held or unbonding, range(len(nodes) + 2), "node")
        node = nodes.get(node_id)
        call = ("registry", "withdraw_stake", self.sender(data, *([node.operator] if node else [])), node_id)
        if node and data.draw(st.booleans(), label="wait for it"):
            self.act_around(node.release_at, *call)
        else:
            self.driver.act(*call)

    @action(4)
    def offer(self, data):
        """List a service, change its price, pause it or resume it."""
        data.draw(st.sampled_from([self.list_service, self.set_price, self.set_active]), label="offer")(data)

    def list_service(self, data):
        node_id, operator = self.node(data)
        category = mostly(data, CATEGORIES, BAD_LABELS, "category")
        listing = (node_id, category, data.draw(PRICES, label="price"), data.draw(TEXTS, label="metadata"))
        self.driver.act("registry", "list_service", self.sender(data, *operator), *listing)

    def set_price(self, data):
        service_id, operator = self.service(data)
        price = data.draw(PRICES, label="price")
        self.driver.act("registry", "set_price", self.sender(data, *operator), service_id, price)

    def set_active(self, data):
        """Resume what is paused, and seldom pause."""
        service_id, operator = self.service(data)
        paused = bool(operator) and not self.model.registry.services[service_id].active
        active = paused or data.draw(st.booleans(), label="active")
        self.driver.act("registry", "set_active", self.sender(data, *operator), service_id, active)

    @action(3)
    def administer(self, data):
        """Texts, capabilities, and who operates a node."""
        tasks = [self.set_texts, self.set_capability, self.transfer_node, self.accept_node]
        data.draw(st.sampled_from(tasks), label="task")(data)

    def set_texts(self, data):
        service_id, operator = self.service(data)
        text = data.draw(TEXTS, label="metadata")
        self.driver.act("registry", "set_metadata", self.sender(data, *operator), service_id, text)
        node_id, operator = self.node(data)
        text = mostly(data, TEXTS, st.just(""), "endpoint")
        self.driver.act("registry", "set_endpoint", self.sender(data, *operator), node_id, text)

    def set_capability(self, data):
        node_id, operator = self.node(data)
        capability = mostly(data, CAPABILITIES, st.one_of(BAD_LABELS, st.just("a:b")), "capability")
        has = bool(operator) and capability in self.model.registry.nodes[node_id].capabilities
        enabled = mostly(data, st.just(not has), st.just(has), "enabled")
        self.driver.act("registry", "set_capability", self.sender(data, *operator), node_id, capability, enabled)

    def transfer_node(self, data):
        node_id, operator = self.node(data)
        receiver = mostly(data, st.sampled_from(self.model.accounts), st.just(EMPTY), "receiver")
        offered = self.driver.act("registry", "transfer_node", self.sender(data, *operator), node_id, receiver)
        if offered.reason is None and receiver != EMPTY and data.draw(st.booleans(), label="accepts"):
            self.driver.act("registry", "accept_node", receiver, node_id)

    def accept_node(self, data):
        """Take a node that was offered, and seldom take it twice."""
        offered = {i: node.pending for i, node in self.model.registry.nodes.items() if node.pending != EMPTY}
        node_id = one_of(data, offered, range(5), "node")
        receiver = self.sender(data, *([offered[node_id]] if node_id in offered else []))
        for _ in range(data.draw(st.integers(1, 2), label="times")):
            self.driver.act("registry", "accept_node", receiver, node_id)
