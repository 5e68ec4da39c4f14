"""What all actions use: the driver, its model, choices of accounts and ids, and how one action is chosen."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from tests.contracts.stateful.choosing import one_of


def action(weight, when=None):
    """Mark a method as something that a run may do: how often, and only when something holds."""

    def mark(method):
        method.weight, method.when = weight, when
        return method

    return mark


class MachineBase(RuleBasedStateMachine):
    """A run and its driver."""

    driver = None

    @property
    def model(self):
        return self.driver.model

    def possible(self):
        """The names of the actions that can be done now, each as often as it weighs, in a fixed order."""
        found = [
            (name, getattr(type(self), name))
            for name in dir(type(self))
            if hasattr(getattr(type(self), name), "weight")
        ]
        fitting = [(name, method) for name, method in found if method.when is None or method.when(self)]
        return [name for name, method in fitting for _ in range(method.weight)]

    def anyone(self, data):
        return data.draw(st.sampled_from(self.model.accounts), label="anyone")

    def sender(self, data, *entitled):
        """Who sends: mostly one who may."""
        return one_of(data, entitled, self.model.accounts, "sender")

    def node(self, data):
        """A node and who operates it; seldom one that does not exist."""
        nodes = self.model.registry.nodes
        node_id = one_of(data, nodes, range(len(nodes) + 2), "node")
        return node_id, [nodes[node_id].operator] if node_id in nodes else []

    def service(self, data):
        """A service and who operates it; seldom one that does not exist."""
        services, nodes = self.model.registry.services, self.model.registry.nodes
        service_id = one_of(data, services, range(len(services) + 2), "service")
        return service_id, [nodes[services[service_id].node_id].operator] if service_id in services else []

    def session(self, data, likely):
        """A session of the likely ones, seldom any other, or none."""
        every = [*self.model.manager.sessions, b"\7" * 32]
        return one_of(data, likely, every, "session")

    def act_around(self, moment, *call):
        """Try what is allowed from a moment on in the second before it and at it."""
        for second in (moment - 1, moment):
            if second >= self.model.world.now:
                self.driver.set_clock(now=second)
                self.driver.act(*call)

    def in_status(self, *statuses):
        return [i for i, session in self.model.manager.sessions.items() if session.status in statuses]
