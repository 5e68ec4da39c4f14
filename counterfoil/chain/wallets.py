"""Asking the ledger about the signatures of wallet contracts, for whoever takes records without the chain."""

from threading import Lock

from counterfoil.chain.connection import Chain, connect
from counterfoil.chain.contracts import ExperienceLedger, ExperienceRecord
from counterfoil.chain.errors import ChainError, RevertedError
from indexer.settings import Settings

_SECONDS = 5
"""How long the chain may take for one answer, at most."""


class WalletSignatures:
    """Connects when it is first asked, since a server must start without a chain, and keeps the connection."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.model_copy(update={"request_seconds": min(_SECONDS, settings.request_seconds)})
        self._lock = Lock()
        self._chain: Chain | None = None

    def __call__(self, client: str, record: ExperienceRecord, signature: bytes) -> bool:
        """Whether the ledger takes a signature of a client that is a contract. Raises ChainError, RevertedError."""
        try:
            chain = self._connected()
            return bool(chain.code(client)) and ExperienceLedger(chain).would_take(record, signature)
        except RevertedError:
            raise
        except ChainError:
            self.close()  # the next one looks again whose chain it is
            raise

    def _connected(self) -> Chain:
        with self._lock:
            if self._chain is None:
                self._chain = connect(self._settings)
            return self._chain

    def close(self) -> None:
        """Close the connection; asked again, it makes another."""
        with self._lock:
            chain, self._chain = self._chain, None
        if chain is not None:
            chain.close()
