"""The demo's services and nodes: each operator that is up runs `counterfoil node serve` in front of its services."""

import sys
from pathlib import Path
from typing import Final

from counterfoil.chain.keys import OWN
from counterfoil.demo.cast import COMPLETION, OPERATORS, PRICE, SEARCH, Habit, operator_account
from counterfoil.demo.processes import Processes, answers, free_ports

BIN: Final = Path(sys.executable).parent
SLOWNESS_SECONDS: Final = 0.25
# What a service is, and where its own URL ends.
_KINDS: Final = {PRICE: ("data", "/price"), SEARCH: ("search", "/mcp"), COMPLETION: ("completion", "/v1")}
_MANNERS: Final = {Habit.GOOD: (), Habit.SLOW: ("--delay", str(SLOWNESS_SECONDS)), Habit.FAILS: ("--failing",)}


def start_nodes(processes: Processes, ports: tuple[int, ...]) -> None:
    """Start the services and, at the operators' ports, the nodes in front of them; all answer when this returns."""
    urls = _start_services(processes)
    up = [position for position, operator in enumerate(OPERATORS) if operator.habit is not Habit.DOWN]
    for position in up:
        operator = OPERATORS[position]
        upstreams = [f"{category}={urls[category, operator.habit]}" for category in operator.services]
        command = [
            str(BIN / "counterfoil"), "node", "serve", str(position + 1), "--node-upstreams", ",".join(upstreams),
            "--node-listen", f"127.0.0.1:{ports[position]}",
            # Anvil makes a block only for a transaction: no second one would confirm a session.
            "--node-confirmations", "0",
        ]  # fmt: skip
        key = "0x" + bytes(operator_account(position).key).hex()
        processes.start(f"node-{position + 1}", command, {OWN.key: key})
    for position in up:
        processes.wait(f"node-{position + 1}", lambda port=ports[position]: answers(port))  # type: ignore[misc]


def _start_services(processes: Processes) -> dict[tuple[str, Habit], str]:
    wanted = sorted({(c, o.habit) for o in OPERATORS for c in o.services if o.habit is not Habit.DOWN})
    urls: dict[tuple[str, Habit], str] = {}
    for (category, habit), port in zip(wanted, free_ports(len(wanted)), strict=True):
        kind, path = _KINDS[category]
        command = [sys.executable, "-m", "counterfoil.demo.upstreams", kind, "--port", str(port), *_MANNERS[habit]]
        processes.start(f"service-{kind}-{habit}", command)
        urls[category, habit] = f"http://127.0.0.1:{port}{path}"
    for category, habit in wanted:
        port = int(urls[category, habit].split(":")[2].split("/")[0])
        processes.wait(f"service-{_KINDS[category][0]}-{habit}", lambda port=port: answers(port))  # type: ignore[misc]
    return urls
