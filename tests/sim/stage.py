"""Plays cases: builds what each needs, and keeps what can be shared."""

import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.sim.case import SMALL
from tests.sim.chains import CHAIN_SEED, busy_chain
from tests.sim.forge import Forge
from tests.sim.lab import Lab, Outcome, Verdict, build_reference
from tests.sim.proxy import Proxy
from tests.sim.stores import PostgresStores, SqliteStores
from tests.support.postgres import postgres


class Stage:
    """Chains, and databases of both kinds; `size` is that of the large chains. Close it to end what it started."""

    def __init__(self, size):
        self.size = size
        self._stack = ExitStack()
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="counterfoil-sim-")))
        self._folder.chmod(0o711)  # a database server may be another user, and may have files in it
        self._made = {}
        self._homes = 0

    def play(self, case, kind, seed, verify):
        """Play a case on a fresh store; whatever the case itself raises is wrong, too."""
        with ExitStack() as stack:
            try:
                size = self.size if case.large or case.own_chain else SMALL
                return case.play(self.lab(stack, size, case.own_chain, kind, f"{case.name}/{seed}", verify))
            except Exception as error:  # noqa: BLE001 - one broken case must not end the others
                return Verdict(Outcome.WRONG, f"{type(error).__name__}: {error}")

    def lab(self, stack, size, own_chain, kind, seed, verify):
        """Make a lab whose parts end with the stack."""
        world, references = self._own(stack, size) if own_chain else self._once(size, lambda: self._shared(size))
        proxy = stack.enter_context(Proxy(world.url, seed))
        stores = self.stores(kind)
        self._homes += 1
        return Lab(
            world=world,
            proxy=proxy,
            store=stack.enter_context(stores.fresh()),
            stores=stores,
            forge=self.forge,
            home=self._folder / f"home-{self._homes}",
            size=size,
            seed=seed,
            verify=verify,
            references=references,
        )

    def forge(self):
        """The process that forks commands, started on first use."""
        return self._once("forge", lambda: self._stack.enter_context(Forge()))

    def stores(self, kind):
        return self._once(kind, self._sqlite if kind == "sqlite" else self._postgres)

    def close(self):
        self._stack.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _own(self, stack, size):
        return stack.enter_context(busy_chain(size.own_blocks, size.own_events, CHAIN_SEED)), []

    def _shared(self, size):
        """A chain that no case changes, and its clean index. All its blocks have one timestamp."""
        world = self._stack.enter_context(busy_chain(size.blocks, size.events, CHAIN_SEED, interval=0))
        return world, [build_reference(world, self._folder / f"shared-{size.blocks}")]

    def _sqlite(self):
        return SqliteStores(self._folder / "sqlite")

    def _postgres(self):
        return PostgresStores(self._stack.enter_context(postgres()))

    def _once(self, name, make):
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]
