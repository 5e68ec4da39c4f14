"""Where the gas of one transaction goes, by kind of cost, from the chain's own trace."""

from collections import Counter
from typing import Any

NEW_WORD = 20_000
COLD_ACCESS = 2_100
TRANSACTION = 21_000
KINDS = (
    "transaction", "calldata", "new storage", "changed storage", "storage reads", "logs", "calls", "hashing",
    "lock", "code", "refund",
)  # fmt: skip
_BY_NAME = {"SLOAD": "storage reads", "KECCAK256": "hashing", "SHA3": "hashing", "TLOAD": "lock", "TSTORE": "lock"}


def _own_costs(steps: list[dict[str, Any]]) -> list[int]:
    """What each step costs itself, without the steps of the calls that it makes."""
    costs = [0] * len(steps)
    # By depth: the step there that is not closed yet, and what its callees have cost so far.
    waiting: dict[int, tuple[int, int]] = {}
    for i, step in enumerate(steps):
        depth = step["depth"]
        if depth in waiting:
            before, inner = waiting.pop(depth)
            costs[before] = steps[before]["gas"] - step["gas"] - inner
            _charge(waiting, depth - 1, costs[before])
            if inner:
                _charge(waiting, depth - 1, inner)
        if step["op"] in ("RETURN", "STOP"):
            costs[i] = step["gasCost"]
            _charge(waiting, depth - 1, costs[i])
        else:
            waiting[depth] = (i, 0)
    return costs


def _charge(waiting: dict[int, tuple[int, int]], depth: int, cost: int) -> None:
    if depth in waiting:
        before, inner = waiting[depth]
        waiting[depth] = (before, inner + cost)


def _kind(step: dict[str, Any], cost: int) -> str:
    name = step["op"]
    if name == "SSTORE":
        return "new storage" if cost >= NEW_WORD else "changed storage"
    if name.startswith("LOG"):
        return "logs"
    if name.endswith("CALL"):
        return "calls"
    return _BY_NAME.get(name, "code")


def by_kind(steps: list[dict[str, Any]], calldata: bytes, gas_used: int) -> dict[str, int]:
    """The gas of each kind; they add up to what the transaction used."""
    costs: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
    for step, cost in zip(steps, _own_costs(steps), strict=True):
        costs[_kind(step, cost)] += cost
    costs["transaction"] = TRANSACTION
    costs["calldata"] = sum(16 if byte else 4 for byte in calldata)
    costs["refund"] = gas_used - costs.total()
    return dict(costs)
