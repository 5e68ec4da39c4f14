"""Faults of the node itself: another chain, pruned history, and things that happen while requests pass."""

from tests.sim.proxy import Fault


class WrongChainId(Fault):
    """The node says that it is of another chain."""

    name = "a wrong chain id"

    def answer(self, call, answer):
        return {**answer, "result": "0x1"} if call.method == "eth_chainId" else answer


class Pruned(Fault):
    """The node lost what is between genesis and a block: `methods` answer null, or an error in a client's words."""

    def __init__(self, below, wording=None, methods=("eth_getLogs", "eth_getBlockReceipts")):
        self.name = "pruned history"
        self.below, self.wording, self.methods = below, wording, methods

    def answer(self, call, answer):
        first = _first_block(call) if call.method in self.methods else None
        if first is None or not 0 < first < self.below:
            return answer
        if self.wording is None:
            return {"jsonrpc": "2.0", "id": call.id, "result": None}
        return {"jsonrpc": "2.0", "id": call.id, "error": self.wording.error()}


class At(Fault):
    """Does something once, when the n-th request passes. Requests wait for it."""

    name = "something happens"

    def __init__(self, request, action):
        self.left, self.action = request, action

    def before(self, calls):
        self.left -= 1
        if self.left == 0:
            self.action()


class Either(Fault):
    """Two nodes behind one address: each request goes to one of them."""

    name = "two nodes behind one address"

    def __init__(self, *urls):
        self.urls = urls

    def upstream(self, calls):
        return self.rng.choice(self.urls)


def _first_block(call):
    """The lowest block that a call asks for, None where it names none."""
    wanted = call.params[0]
    number = wanted.get("fromBlock", "") if call.method == "eth_getLogs" else wanted
    return int(number, 16) if number.startswith("0x") else None
