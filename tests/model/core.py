"""What all models share: reverts, signatures, the clock, the log of events, and the lock against re-entry."""

from dataclasses import dataclass, field
from functools import wraps
from typing import NamedTuple

from eth_utils import keccak

EMPTY = "0x" + "00" * 20
MAX_AMOUNT = 2**128
MAX_COUNT = 2**32
NO_CAP = 2**256 - 1


class Reverted(Exception):  # noqa: N818
    """A call that must fail, and the reason it must give."""


def require(condition, reason):
    """Revert with a reason unless a condition holds."""
    if not condition:
        raise Reverted(reason)


class Message(NamedTuple):
    """What is signed: a type of struct for one contract, and its fields."""

    kind: str
    contract: str
    fields: tuple


class Signature(NamedTuple):
    """Who signed what. One that is not `sound` has been tampered with: a high s, or a byte cut off."""

    signer: str
    message: Message
    sound: bool = True

    def approves(self, account, message):
        """Say whether this is an account's signature of a message."""
        return self.sound and self.signer == account and self.message == message


@dataclass
class World:
    """What no contract owns: time, blocks, which fork of the chain this is, the events of a call, and who has a key."""

    chain_id: int
    now: int
    block: int
    keys: frozenset
    fork: int = 0
    events: list = field(default_factory=list)

    def block_hash(self, number):
        """The hash of a block of this fork."""
        return keccak(text=f"block {number} of fork {self.fork}")


@dataclass
class Contract:
    """What every contract has: an address, the world, and a lock that its own external functions take."""

    address: str
    world: World
    locked: bool = field(default=False, init=False)

    def log(self, name, *values):
        """Write an event down."""
        self.world.events.append((name, *values))


def external(function):
    """Mark a function that nobody can enter while its contract runs."""

    @wraps(function)
    def guarded(self, *arguments):
        require(not self.locked, "")
        self.locked = True
        try:
            return function(self, *arguments)
        finally:
            self.locked = False

    return guarded
