"""A client of a node: one session, its vouchers, and calls over real HTTP."""

import threading
from contextlib import contextmanager

import httpx

from counterfoil.chain.typed_data import voucher as voucher_data
from counterfoil.node.vouchers import Voucher
from counterfoil.node.wire import voucher_headers
from tests.support.chain import CATEGORY, person

PATIENCE = 60


class Caller:
    """One session of a client with a service, opened when this is made. `url` is the node's unless it is named."""

    def __init__(self, world, service_id, client="alice", url=None, category=CATEGORY):
        self.world = world
        self.client = client
        service = world.registry.service(service_id)
        self.price = service.price
        self.node_id = service.node_id
        self.url = url or world.registry.node(service.node_id).endpoint
        self.receipt = world.decide(client, category, pinned=service_id)
        self.session_id = world.open(client, self.receipt)

    def voucher(self, amount, calls, signer=None, session_id=None):
        session_id = session_id or self.session_id
        manager = self.world.manager
        data = voucher_data(self.world.chain.chain_id, manager.address, session_id, amount, calls)
        return Voucher(session_id, amount, calls, data.sign(person(signer or self.client)))

    def next(self, calls, **changes):
        """The headers of the voucher for so many calls at their price."""
        return voucher_headers(self.voucher(self.price * calls, calls, **changes))

    def send(self, path, headers, body=b"hello", method="POST"):
        with httpx.Client(timeout=PATIENCE, trust_env=False, verify=False) as client:  # certificates take long to load
            return client.request(method, self.url + path, content=body, headers=headers)

    def call(self, calls, body=b"hello", path="/call", method="POST", headers=None, **changes):
        return self.send(path, {**self.next(calls, **changes), **(headers or {})}, body, method)

    @contextmanager
    def stream(self, calls, body=b"hello"):
        """The answer as it comes."""
        with (
            httpx.Client(timeout=PATIENCE, trust_env=False, verify=False) as client,
            client.stream("POST", self.url + "/call", content=body, headers=self.next(calls)) as answer,
        ):
            yield answer

    def settle(self, amount=0, calls=0, **changes):
        return self.send("/settle", voucher_headers(self.voucher(amount, calls, **changes)), b"")

    def close(self):
        self.world.by(self.client).send(self.world.manager.request_close(self.session_id))

    def state(self):
        return self.world.manager.session(self.session_id)


def until(true):
    """Wait until something is true; gives it."""
    waiting = threading.Event()
    for _ in range(100 * PATIENCE):
        found = true()
        if found:
            return found
        waiting.wait(0.01)
    raise AssertionError("it never came true")


def error(response):
    """An error answer's status and type."""
    return response.status_code, response.json()["error"]["type"]
