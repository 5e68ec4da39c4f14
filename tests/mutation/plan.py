"""Which sources are mutated, and which tests stand against a fault of each, the nearest first."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = ROOT / "contracts"
UNIT = "tests/contracts/unit"
SESSIONS = f"{UNIT}/session_manager"
STATEFUL = "tests/contracts/stateful"
MODULES = "tests/contracts/test_modules.py"

TESTS = {
    "NodeRegistry.vy": (f"{UNIT}/node_registry", f"{UNIT}/dispute_court", STATEFUL),
    "SessionManager.vy": (SESSIONS, f"{UNIT}/test_replay.py", STATEFUL),
    "ReputationLedger.vy": (f"{UNIT}/reputation_ledger", "tests/contracts/test_raters.py", STATEFUL),
    "ExperienceLedger.vy": (f"{UNIT}/experience_ledger", f"{UNIT}/test_replay.py", STATEFUL),
    "DisputeCourt.vy": (f"{UNIT}/dispute_court", STATEFUL),
    "RoutingLens.vy": (f"{UNIT}/routing_lens", "tests/contracts/lottery"),
    "modules/packing.vy": ("tests/contracts/packing", SESSIONS, f"{UNIT}/node_registry", STATEFUL),
    "modules/choices.vy": (
        f"{SESSIONS}/test_open_draws.py",
        f"{SESSIONS}/test_open.py",
        f"{UNIT}/routing_lens",
        STATEFUL,
    ),
    "modules/lottery.vy": ("tests/contracts/lottery", f"{UNIT}/routing_lens"),
    "modules/token.vy": (MODULES, SESSIONS, f"{UNIT}/node_registry", f"{UNIT}/test_token_kinds.py", STATEFUL),
    "modules/labels.vy": (MODULES, f"{UNIT}/node_registry"),
    "modules/signatures.vy": (MODULES, f"{UNIT}/reputation_ledger", f"{UNIT}/experience_ledger"),
}


def sources(contracts: Path = CONTRACTS) -> dict[str, str]:
    """The text of each mutated file, by its path below contracts/."""
    found = sorted([*contracts.glob("*.vy"), *(contracts / "modules").glob("*.vy")])
    return {path.relative_to(contracts).as_posix(): path.read_text() for path in found}
