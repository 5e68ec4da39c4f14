"""A market with honest and dishonest clients, on a real chain and in a real index."""

import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from counterfoil.receipts import Skipped, build, canonical, digest_of
from indexer import service
from indexer.settings import Settings
from tests.support.chain import MIN_STAKE, World, anvil, deploy


@dataclass
class Busy:
    """The world and its sessions by what is special about each."""

    world: World
    sessions: dict
    home: Path
    database: Path

    @property
    def first_block(self):
        return self.world.chain.deployment.first_block

    def settings(self, **changes):
        fields = {"home": self.home, "rpc_url": self.world.url, "database": f"sqlite:///{self.database}"}
        return Settings(**(fields | changes))

    def edited(self, folder, *statements):
        """A copy of the index with changes made by hand."""
        path = folder / "edited.sqlite"
        with closing(sqlite3.connect(self.database)) as source, closing(sqlite3.connect(path)) as copy:
            source.backup(copy)
            for statement in statements:
                assert copy.execute(statement).rowcount > 0, statement
            copy.commit()
        return path


@contextmanager
def busy_world(home):
    with anvil() as url:
        world = deploy(url, home)
        for i in range(5):
            world.node(f"operator{i}", MIN_STAKE * (i + 1), 100 + 5 * i)
        world.node("whale", MIN_STAKE * 50, 1000)
        world.node("writer", MIN_STAKE * 2, 7000, "llm:completion")
        sessions = honest(world) | dishonest(world)
        busy = Busy(world, sessions, home, home / "index.sqlite")
        service.index_run(busy.settings())
        try:
            yield busy
        finally:
            world.chain.close()


def honest(world):
    """Sessions that replay."""
    first = world.route("alice")
    world.settle(first, "alice", f"operator{world.manager.session(first).node_id - 1}", calls=2)
    return {
        "first": first,
        "second": world.route("alice"),
        "next": world.skip_first("bob", cap=110),
        "relaxed": world.route("dave", cap=50),
        "pinned": world.route("carl", pinned=6),
        "writer": world.route("carl", category="llm:completion"),
        "failed over": failed_over(world),
    }


def failed_over(world):
    """A session whose node failed after it was opened, followed by the next attempt of the same draw."""
    world.by("erin")
    start = world.decide("erin")
    world.open("erin", start)
    skipped = [Skipped(start.order[0], "HTTP status 500 on the first call")]
    same = {"block": start.snapshot_block, "nonce": start.request.nonce}
    return world.open("erin", world.decide("erin", attempt=1, skipped=skipped, **same))


def dishonest(world):
    """Sessions that do not replay, or cannot be checked."""
    world.by("mallory")
    return {
        "moved price": moved_price(world),
        "other service": other_service(world),
        "lying receipt": lying_receipt(world),
        "foreign receipt": world.open("mallory", world.decide("mallory"), decision=honest_decision(world)),
        "bad receipt": bad_receipt(world),
        "lost receipt": world.open("mallory", world.decide("mallory"), save=False),
        "no receipt": world.open("mallory", world.decide("mallory"), decision="0x" + "0" * 64),
        "other policy": world.open("mallory", world.decide("mallory"), policy=2),
        "far attempt": world.open("mallory", replace(world.decide("mallory", cap=109), attempt=4)),
        "pinned attempt": world.open("mallory", replace(world.decide("mallory", pinned=6), attempt=1)),
    }


def honest_decision(world):
    return next(world.receipts.digests())


def moved_price(world):
    """The price rises between the snapshot and the opening, and the client had allowed for it."""
    receipt = world.decide("mallory")
    operator = f"operator{receipt.choice - 1}"
    price = world.registry.service(receipt.choice).price
    world.by(operator).send(world.registry.set_price(receipt.choice, price + 1))
    session = world.open("mallory", receipt, max_price=price + 3)
    world.by(operator).send(world.registry.set_price(receipt.choice, price))
    return session


def other_service(world):
    receipt = world.decide("mallory")
    return world.open("mallory", receipt, service_id=receipt.order[1])


def lying_receipt(world):
    """A receipt that follows from its own inputs, which are not the chain's."""
    true = world.decide("mallory")
    doctored = [replace(one, stake=one.stake + 1) if one.service_id == 2 else one for one in true.candidates]
    lie = build(
        chain_id=true.chain_id,
        contracts=true.contracts,
        snapshot_block=true.snapshot_block,
        snapshot_hash=true.snapshot_hash,
        request=true.request,
        candidates=doctored,
    )
    return world.open("mallory", lie)


def bad_receipt(world):
    """The session commits to bytes that are no receipt."""
    receipt = world.decide("mallory")
    data = canonical(receipt) + b"\n"
    world.receipts.path(digest_of(data)).write_bytes(data)
    return world.open("mallory", receipt, decision=digest_of(data))
