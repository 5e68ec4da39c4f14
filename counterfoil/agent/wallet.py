"""A client's account: one sends at a time, whatever threads and processes share it, and a relayer may pay the gas."""

import fcntl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from eth_account.signers.local import LocalAccount

from counterfoil.chain.connection import Chain
from counterfoil.chain.contracts import Write
from counterfoil.chain.errors import ChainError
from counterfoil.chain.sender import Mined, Sender, Signed

GAS: Final = 600_000
"""For how much gas an account has to hold the price before it sends anything itself."""


class Wallet:
    """One account on one chain. `folder` holds its lock, `relayer` is an account of its owner that has gas."""

    def __init__(self, chain: Chain, account: LocalAccount, folder: Path, relayer: LocalAccount | None = None) -> None:
        self.chain = chain
        self.account = account
        self.address = str(account.address).lower()
        self._own = Sender(chain, account)
        self._relayer = Sender(chain, relayer) if relayer else None
        self._lock = threading.RLock()
        self._depth = 0
        folder.mkdir(parents=True, exist_ok=True)
        accounts = {self.address, *([str(relayer.address).lower()] if relayer else [])}
        self._paths = [folder / f"{one}.lock" for one in sorted(accounts)]

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Keep everybody else from sending: account nonces and draw numbers are counted one by one.

        A relayer's too, which other wallets may have as well.
        """
        with self._lock:
            self._depth += 1
            try:
                if self._depth > 1:
                    yield
                else:
                    with ExitStack() as held:
                        for path in self._paths:
                            fcntl.flock(held.enter_context(path.open("w")), fcntl.LOCK_EX)
                        yield
            finally:
                self._depth -= 1

    def pays(self) -> bool:
        """Whether the account has gas of its own."""
        return self._own.can_pay(GAS)

    def sender(self) -> Sender:
        """Who sends what anybody may send: the account, or its relayer where the account has no gas.

        Raises ChainError where neither has.
        """
        if self.pays():
            return self._own
        if self._relayer is not None and self._relayer.can_pay(GAS):
            return self._relayer
        also = f", and its relayer {self._relayer.address} has none either" if self._relayer else ""
        raise ChainError(
            f"The wallet {self.address} has no gas{also}: send it some of the chain's coin, or name a relayer that has "
            "gas with COUNTERFOIL_RELAYER_KEYSTORE."
        )

    def send(self, write: Write) -> Mined:
        """Send what only the account may send. Raises what `Sender.send` raises."""
        with self.turn():
            return self._own.send(write)

    def sign(self, write: Write) -> Signed:
        """Sign what only the account may send, and send nothing. Raises what `Sender.sign` raises."""
        return self._own.sign(write)

    def submit(self, signed: Signed) -> Mined:
        """Send what the account or its relayer signed. Raises what `Sender.submit` raises."""
        with self.turn():
            return self._own.submit(signed)

    def is_lost(self, signed: Signed) -> bool:
        """Whether a signed transaction can never be mined."""
        return self._own.is_lost(signed)

    def is_early(self, signed: Signed) -> bool:
        """Whether a signed transaction waits for one before it that the chain does not have."""
        return self._own.is_early(signed)

    def carry(self, write: Write) -> Mined:
        """Send what anybody may send."""
        with self.turn():
            return self.sender().send(write)
