"""The real half: the contracts in boa, sent to without its stack traces, and read again where it changed."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import boa
from boa.util.abi import abi_decode
from boa.vm.utils import to_int
from vyper.codegen.core import calculate_type_for_external_return
from vyper.semantics.types import TupleT

from tests.contracts.conftest import ROOT

HERE = ROOT / "tests" / "contracts" / "stateful"
ERROR_STRING = bytes.fromhex("08c379a0")
REACH = 16
PARTS = ("stake", "payment", "registry", "manager", "reputation", "experience", "court", "lens")
SLOAD = 0x54


class Outcome(NamedTuple):
    """How a call ended: what it gave and logged, or the reason it reverted with."""

    reason: str | None
    answer: Any = None
    events: tuple = ()


class ReadTracer:
    """The opcode SLOAD, which also writes down which slot of which contract it reads."""

    mnemonic = "SLOAD"

    def __init__(self, sload):
        self.sload = sload
        self.slots = set()

    def __call__(self, computation):
        slot = to_int(computation._stack.values[-1])
        self.slots.add((computation.msg.storage_address, slot))
        self.sload(computation)


@cache
def read_tracer():
    """The tracer, put in place once."""
    opcodes = boa.env.evm.vm.state.computation_class.opcodes
    opcodes[SLOAD] = ReadTracer(opcodes[SLOAD])
    return opcodes[SLOAD]


@cache
def compiled(path):
    """A contract's deployer; each is compiled once."""
    return boa.load_partial(str(path))


def contract(name, *arguments, **options):
    """Deploy one of the sources of the repository."""
    return compiled(ROOT / "contracts" / f"{name}.vy").deploy(*arguments, **options)


def helper(name):
    """Deploy one of the sources beside this test."""
    return compiled(HERE / f"{name}.vy").deploy()


def plain(answer):
    """An answer of boa's in plain types."""
    if isinstance(answer, list):
        return [plain(part) for part in answer]
    if isinstance(answer, tuple):
        return tuple(plain(part) for part in answer)
    return str(answer) if isinstance(answer, str) else answer


def decoded(function, output):
    """What a function returned."""
    if function.func_t.return_type is None:
        return None
    typ = function.func_t.return_type
    answer = abi_decode(calculate_type_for_external_return(typ).abi_type.selector_name(), output)
    return plain(answer) if isinstance(typ, TupleT) else plain(answer[0])


def reason_of(error):
    """The reason that a call reverted with; empty where it gave none."""
    data = error.args[0] if error.args else b""
    if isinstance(data, bytes) and data[:4] == ERROR_STRING:
        return abi_decode("(string)", data[4:])[0]
    return ""


@dataclass
class Chain:
    """The contracts of one deployment by their names in the model."""

    parts: dict
    read: dict = field(default_factory=dict)
    readers: dict = field(default_factory=dict)

    @property
    def evm(self):
        return boa.env.evm

    def copy(self):
        """The same contracts, and what they have said so far."""
        return Chain(self.parts, dict(self.read), {slot: set(views) for slot, views in self.readers.items()})

    def send(self, name, function, sender, *arguments):
        """Send a call to a contract."""
        target = self.parts[name]
        called = getattr(target, function)
        computation = boa.env.execute_code(
            to_address=target.address, sender=sender, data=called.prepare_calldata(*arguments), contract=target
        )
        if computation.is_error:
            return Outcome(reason_of(computation.error))
        events = tuple(event for entry in computation.get_log_entries() for event in self._event(*entry))
        return Outcome(None, decoded(called, computation.output), events)

    def ask(self, view):
        """Ask a view, or remember what it said: nothing is asked twice while no slot that it read was stored to."""
        if view not in self.read:
            slots = read_tracer().slots
            slots.clear()
            target = self.parts[view.contract]
            called = getattr(target, view.function)
            computation = boa.env.execute_code(
                to_address=target.address,
                data=called.prepare_calldata(*view.arguments),
                contract=target,
                is_modifying=False,
            )
            assert not computation.is_error, f"{view} reverted: {reason_of(computation.error)}"
            self.read[view] = decoded(called, computation.output)
            for slot in slots:
                self.readers.setdefault(slot, set()).add(view)
        return self.read[view]

    def forget_what_changed(self):
        """Forget the answers that read a slot which was stored to since the last time."""
        for address, slots in boa.env.sstore_trace.items():
            for slot in slots:
                for view in self.readers.pop((address.canonical_address, slot), ()):
                    self.read.pop(view, None)
        boa.env.sstore_trace.clear()

    def set_time(self, now, block, hash_of):
        """Move the clock and the blocks; the latest few have the hashes that the model gives them."""
        self.evm.patch.timestamp = now
        self.evm.patch.block_number = block
        self.evm.patch.prev_hashes = [hash_of(number) for number in range(block - 1, block - 1 - REACH, -1)]

    def _event(self, address, topics, data):
        """One log as the model writes it: its name, and its values in order. The tokens' are not compared."""
        for name in PARTS[2:]:
            emitter = self.parts[name]
            if emitter.address.canonical_address == address:
                yield self._values(emitter.event_abi_for[topics[0]], topics[1:], data)

    @staticmethod
    def _values(abi, topics, data):
        inputs = abi["inputs"]
        stored = iter(abi_decode("(" + ",".join(i["type"] for i in inputs if not i["indexed"]) + ")", data))
        indexed = iter(topics)
        values = [
            abi_decode(f"({i['type']})", next(indexed).to_bytes(32, "big"))[0] if i["indexed"] else next(stored)
            for i in inputs
        ]
        return (abi["name"], *plain(tuple(values)))
