"""Receipts for tests."""

from counterfoil.receipts import Request, build
from counterfoil.routing.lottery import Candidate

CONTRACTS = {
    "NodeRegistry": "0x" + "1a" * 20,
    "SessionManager": "0x" + "2b" * 20,
    "ReputationLedger": "0x" + "3c" * 20,
}
CLIENT = "0x" + "4d" * 20
HASH = "0x" + "5e" * 32

MARKET = (
    Candidate(1, 100, 20_000_000, 180, 2, 1, 20),
    Candidate(2, 90, 5_000_000, 0, 0, 0, 5),
    Candidate(7, 110, 2**100, 70, 1, 3, 2**90),
    Candidate(9, 900, 50_000_000, 0, 0, 0, 50),
)


def request(**changes):
    return Request(**({"category": "data:crypto-price", "client": CLIENT, "nonce": 3} | changes))


def example(**changes):
    fields = {
        "chain_id": 31337,
        "contracts": CONTRACTS,
        "snapshot_block": 120,
        "snapshot_hash": HASH,
        "request": request(),
        "candidates": MARKET,
    }
    return build(**(fields | changes))
