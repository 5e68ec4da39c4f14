"""The model of NodeRegistry."""

import re
from dataclasses import dataclass, field

from eth_utils import keccak

from tests.model.core import EMPTY, MAX_AMOUNT, Contract, external, require
from tests.model.token import Token

MAX_PRICE = 2**96
CAPABILITY = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")
CATEGORY = re.compile(r"[a-z0-9][a-z0-9.:-]{0,63}")


@dataclass
class Node:
    """One node."""

    operator: str
    endpoint: str
    stake: int = 0
    unbonding: int = 0
    release_at: int = 0
    holds: int = 0
    capabilities: set = field(default_factory=set)
    pending: str = EMPTY


@dataclass
class Service:
    """One listing."""

    node_id: int
    category: str
    price: int
    metadata_uri: str
    active: bool = True

    @property
    def category_id(self):
        return keccak(text=self.category)


@dataclass
class Registry(Contract):
    """Nodes, their stake, and their services; ids count from 1."""

    token: Token
    min_stake: int
    stake_per_slot: int
    unbonding_period: int
    court: str
    nodes: dict = field(default_factory=dict)
    services: dict = field(default_factory=dict)

    @external
    def register_node(self, sender, endpoint, stake):
        require(endpoint, "registry: empty endpoint")
        require(stake < MAX_AMOUNT, "registry: stake too large")
        node_id = len(self.nodes) + 1
        self.nodes[node_id] = Node(sender, endpoint, stake)
        self.log("NodeRegistered", node_id, sender, endpoint)
        self._stake_changed(node_id)
        self.token.pull(sender, self.address, stake)
        return node_id

    @external
    def set_endpoint(self, sender, node_id, endpoint):
        node = self._operated(sender, node_id)
        require(endpoint, "registry: empty endpoint")
        node.endpoint = endpoint
        self.log("EndpointChanged", node_id, endpoint)

    @external
    def set_capability(self, sender, node_id, capability, enabled):
        node = self._operated(sender, node_id)
        require(CAPABILITY.fullmatch(capability), "registry: malformed capability")
        require((capability in node.capabilities) != enabled, "registry: capability unchanged")
        if enabled:
            require(len(node.capabilities) < 16, "registry: too many capabilities")
            node.capabilities.add(capability)
        else:
            node.capabilities.remove(capability)
        self.log("CapabilityChanged", node_id, capability, enabled)

    @external
    def transfer_node(self, sender, node_id, operator):
        self._operated(sender, node_id).pending = operator

    @external
    def accept_node(self, sender, node_id):
        node = self.nodes.get(node_id)
        require(node and node.pending == sender, "registry: not offered to you")
        node.operator, node.pending = sender, EMPTY
        self.log("NodeTransferred", node_id, sender)

    @external
    def add_stake(self, sender, node_id, amount):
        node = self._operated(sender, node_id)
        require(amount > 0, "registry: nothing to stake")
        require(node.stake + amount < MAX_AMOUNT, "registry: stake too large")
        node.stake += amount
        self._stake_changed(node_id)
        self.token.pull(sender, self.address, amount)

    @external
    def request_unstake(self, sender, node_id, amount):
        node = self._operated(sender, node_id)
        require(amount > 0, "registry: nothing to unstake")
        require(amount <= node.stake, "registry: more than the stake")
        require(node.unbonding + amount < MAX_AMOUNT, "registry: unbonding too large")
        node.stake -= amount
        node.unbonding += amount
        node.release_at = self.world.now + self.unbonding_period
        self._stake_changed(node_id)

    @external
    def withdraw_stake(self, sender, node_id):
        node = self._operated(sender, node_id)
        amount = node.unbonding
        require(amount > 0, "registry: nothing unbonding")
        require(self.world.now >= node.release_at, "registry: still unbonding")
        require(node.holds == 0, "registry: held by a dispute")
        node.unbonding = node.release_at = 0
        self._stake_changed(node_id)
        self.token.push(self.address, sender, amount)

    @external
    def list_service(self, sender, node_id, category, price, metadata_uri):
        self._operated(sender, node_id)
        require(CATEGORY.fullmatch(category), "registry: malformed category")
        require(self.service_of(node_id, category) == 0, "registry: category already listed")
        require(price < MAX_PRICE, "registry: price too large")
        service_id = len(self.services) + 1
        self.services[service_id] = Service(node_id, category, price, metadata_uri)
        self.log("ServiceListed", service_id, node_id, keccak(text=category), category, price, metadata_uri)
        return service_id

    @external
    def set_price(self, sender, service_id, price):
        service = self._listed(sender, service_id)
        require(price < MAX_PRICE, "registry: price too large")
        service.price = price
        self.log("PriceChanged", service_id, price)

    @external
    def set_active(self, sender, service_id, active):
        self._listed(sender, service_id).active = active
        self.log("ServiceStatusChanged", service_id, active)

    @external
    def set_metadata(self, sender, service_id, metadata_uri):
        self._listed(sender, service_id).metadata_uri = metadata_uri
        self.log("MetadataChanged", service_id, metadata_uri)

    @external
    def slash(self, sender, node_id, amount):
        node = self._judged(sender, node_id)
        from_stake = min(amount, node.stake)
        from_unbonding = min(amount - from_stake, node.unbonding)
        node.stake -= from_stake
        node.unbonding -= from_unbonding
        self.log("StakeSlashed", node_id, from_stake, from_unbonding, self.court)
        self._stake_changed(node_id)
        taken = from_stake + from_unbonding
        if taken > 0:
            self._pay_court(taken)
        return taken

    @external
    def hold(self, sender, node_id):
        self._judged(sender, node_id).holds += 1

    @external
    def release(self, sender, node_id):
        node = self._judged(sender, node_id)
        require(node.holds > 0, "registry: no hold")
        node.holds -= 1

    def routable(self, service_id):
        """Whether a service takes sessions."""
        require(not self.locked, "")
        service = self.services.get(service_id)
        return bool(service and service.active and self.nodes[service.node_id].stake >= self.min_stake)

    def slots(self, node_id):
        """How many sessions a node's stake pays for."""
        return self.nodes[node_id].stake // self.stake_per_slot

    def listed(self, category):
        """The ids of a category's services, ascending."""
        return [service_id for service_id, service in self.services.items() if service.category == category]

    def service_of(self, node_id, category):
        """The service of a node in a category; 0 for none."""
        of_node = [i for i in self.listed(category) if self.services[i].node_id == node_id]
        return of_node[0] if of_node else 0

    def owed(self):
        """What the registry must hold for its nodes."""
        return sum(node.stake + node.unbonding for node in self.nodes.values())

    def _pay_court(self, amount):
        """What the court takes is no gift: its books know it."""
        gifts = self.token.gifts.get(self.court, 0)
        self.token.push(self.address, self.court, amount)
        self.token.gifts[self.court] = gifts

    def _stake_changed(self, node_id):
        node = self.nodes[node_id]
        self.log("StakeChanged", node_id, node.stake, node.unbonding, node.release_at)

    def _operated(self, sender, node_id):
        require(node_id in self.nodes, "registry: unknown node")
        require(self.nodes[node_id].operator == sender, "registry: not the operator")
        return self.nodes[node_id]

    def _listed(self, sender, service_id):
        require(service_id in self.services, "registry: unknown service")
        self._operated(sender, self.services[service_id].node_id)
        return self.services[service_id]

    def _judged(self, sender, node_id):
        require(sender == self.court, "registry: not the court")
        require(node_id in self.nodes, "registry: unknown node")
        return self.nodes[node_id]
