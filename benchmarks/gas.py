"""What every call costs and how large every contract is: `python benchmarks/gas.py` writes gas.json and gas.md.

Receipts of anvil, the artifacts that are deployed, and a token like the dollar tokens in use. tests/benchmarks fails
when a figure of gas.json has risen by more than 1%.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eth_typing import HexStr

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path[:1]:
    sys.path.insert(0, str(ROOT))  # run by its path, Python looks beside this file only

from benchmarks import opcodes  # noqa: E402
from benchmarks.stage import HARDFORK, Source, Stage, anvil  # noqa: E402
from benchmarks.story import Story  # noqa: E402
from counterfoil.chain.artifacts import artifact  # noqa: E402

SNAPSHOT = ROOT / "benchmarks" / "gas.json"
TABLE = ROOT / "benchmarks" / "gas.md"
TOLERANCE_PERCENT = 1
SIZE_LIMIT = 24_576
CONTRACTS = (
    "NodeRegistry", "SessionManager", "ReputationLedger", "ExperienceLedger", "DisputeCourt", "RoutingLens",
)  # fmt: skip
# Ours where the choice or the full text is in the call, the prototype's otherwise.
AIMS = {
    "NodeRegistry.register_node": 96_000,
    "SessionManager.open": 155_000,
    "SessionManager.open_with_authorization": 157_000,
    "SessionManager.top_up (no credit)": 59_000,
    "SessionManager.settle": 60_000,
    "SessionManager.request_close": 34_000,
    "SessionManager.finish_close": 40_000,
    "SessionManager.withdraw": 43_000,
    "ReputationLedger.rate": 70_000,
    "ExperienceLedger.attest (first of a session)": 100_000,
}
Figures = Mapping[str, Any]


def measured(source: Source = artifact) -> dict[str, Any]:
    """Tell the story twice on a chain of its own, and give all figures; the second time is the steady state."""
    with anvil() as url:
        stage = Stage(url, source)
        story = Story(stage)
        first = story.tell()
        steady = story.tell()
        return {
            "calls": {name: {"first": first[name], "steady": steady[name]} for name in sorted(first)},
            "bytes": {name: stage.size(name) for name in CONTRACTS},
            "kinds": {name: _kinds(stage, story, name) for name in AIMS},
        }


def _kinds(stage: Stage, story: Story, name: str) -> dict[str, int]:
    transaction = story.transactions[name]
    calldata = bytes(stage.web3.eth.get_transaction(HexStr(transaction))["input"])
    return opcodes.by_kind(stage.trace(transaction), calldata, story.gas[name])


def flat(figures: Figures) -> dict[str, int]:
    """The figures that must not rise, by one name each."""
    calls = {f"{call}, {when}": gas for call, both in figures["calls"].items() for when, gas in both.items()}
    return calls | {f"{contract}, bytes": size for contract, size in figures["bytes"].items()}


def risen(before: Figures, now: Figures) -> dict[str, tuple[int, int]]:
    """What rose by more than the tolerance, with both figures."""
    old = flat(before)
    return {
        name: (old[name], figure)
        for name, figure in flat(now).items()
        if name in old and figure * 100 > old[name] * (100 + TOLERANCE_PERCENT)
    }


def rendered(figures: Figures) -> str:
    """The figures as a page."""
    return "\n".join([*_calls(figures), "", *_where(figures), "", *_sizes(figures), ""])


def _row(*cells: object) -> str:
    return "| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells) + " |"


def _calls(figures: Figures) -> Iterator[str]:
    yield "# Gas"
    yield ""
    yield "Written by `python benchmarks/gas.py`: gas used by receipts on anvil, with a token that has a block list and"
    yield f"authorisations, under the rules of {HARDFORK}. *First*: nothing of its kind is stored yet. *Steady*:"
    yield "counters are above zero and a returning client has credit, so that no token moves unless the call says so."
    yield "The token's block list is 4,200 of each call that moves tokens. An aim is ours where the choice or the full"
    yield "text is in the call, and otherwise what a prototype without choice, counters and credit events needed."
    yield ""
    yield _row("Call", "First", "Steady", "Aim", "Against it")
    yield "|---|--:|--:|--:|--:|"
    for name, gas in figures["calls"].items():
        aim = AIMS.get(name)
        against = f"{(gas['steady'] - aim) * 100 / aim:+.1f}%" if aim else ""
        yield _row(name, gas["first"], gas["steady"], aim or "", against)


def _where(figures: Figures) -> Iterator[str]:
    kinds = [kind for kind in opcodes.KINDS if any(costs[kind] for costs in figures["kinds"].values())]
    yield "## Where it goes (steady)"
    yield ""
    yield "*New storage*: words that were zero. *Calls*: what a call costs itself, with precompiles; the work of the"
    yield "called contract is in the other columns. *Lock*: transient storage against re-entry. *Code*: stack, memory,"
    yield "jumps."
    yield ""
    yield _row("Call", *(kind.capitalize() for kind in kinds), "Total")
    yield "|---" + "|--:" * (len(kinds) + 1) + "|"
    for name, costs in figures["kinds"].items():
        yield _row(name, *(costs[kind] for kind in kinds), sum(costs.values()))


def _sizes(figures: Figures) -> Iterator[str]:
    yield "## Size"
    yield ""
    yield _row("Contract", "Bytes", f"Of {SIZE_LIMIT:,}")
    yield "|---|--:|--:|"
    for name, size in figures["bytes"].items():
        yield _row(name, size, f"{size * 100 / SIZE_LIMIT:.0f}%")


def main() -> None:
    """Measure, write both files, and say what moved."""
    before = json.loads(SNAPSHOT.read_text()) if SNAPSHOT.exists() else {"calls": {}, "bytes": {}}
    now = measured()
    SNAPSHOT.write_text(json.dumps(now, indent=1) + "\n")
    TABLE.write_text(rendered(now))
    print(rendered(now))
    old = flat(before)
    moved = {name: (old.get(name), figure) for name, figure in flat(now).items() if old.get(name) != figure}
    for name, (was, figure) in moved.items():
        print(f"{name}: {'new' if was is None else f'{was:,}'} -> {figure:,}")
    print(f"{len(moved)} figures moved; wrote {SNAPSHOT.relative_to(ROOT)} and {TABLE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
