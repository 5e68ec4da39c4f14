"""Who plays in the demo. Amounts are base units (6 decimals); a call's price is in base units too."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from eth_account import Account
from eth_account.signers.local import LocalAccount

# The development mnemonic that anvil and Ape fund on local chains; it guards nothing.
MNEMONIC = "test test test test test test test test test test test junk"
TOKEN = 10**6
AGENTS = 5


class Habit(StrEnum):
    """How a node behaves."""

    GOOD = "good"
    SLOW = "slow"
    FAILS = "fails"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator with one node; `services` maps categories to prices."""

    name: str
    stake: int
    services: dict[str, int]
    habit: Habit = Habit.GOOD


PRICE, SEARCH, COMPLETION = "data:crypto-price", "mcp:web-search", "llm:completion"
OPERATORS = (
    Operator("atlas", 50_000 * TOKEN, {PRICE: 1000, COMPLETION: 9000}),
    Operator("birch", 12_000 * TOKEN, {PRICE: 900}),
    Operator("cedar", 6_000 * TOKEN, {PRICE: 1100, SEARCH: 2000}),
    Operator("whale", 400_000 * TOKEN, {PRICE: 4000}),
    Operator("delta", 20_000 * TOKEN, {SEARCH: 2200, COMPLETION: 8000}),
    Operator("ember", 3_000 * TOKEN, {SEARCH: 1800}),
    Operator("fjord", 9_000 * TOKEN, {COMPLETION: 8500}),
    Operator("grove", 2_000 * TOKEN, {PRICE: 800, SEARCH: 2100}),
    Operator("heron", 15_000 * TOKEN, {PRICE: 950, COMPLETION: 8200}, Habit.SLOW),
    Operator("iris", 10_000 * TOKEN, {SEARCH: 1900}, Habit.FAILS),
    Operator("juno", 8_000 * TOKEN, {PRICE: 1000, SEARCH: 2000}, Habit.DOWN),
    Operator("kelp", 4_000 * TOKEN, {COMPLETION: 7800}),
)


@dataclass(frozen=True, slots=True)
class Errand:
    """What agents want of a category: its need, its task, the tool, and inputs that they take in turn."""

    category: str
    need: str
    task: str
    tool: str
    inputs: tuple[Any, ...]


ERRANDS = (
    Errand(
        PRICE, "data:crypto", "bitcoin spot price in usd", "crypto-price", tuple({"symbol": s} for s in ("BTC", "ETH"))
    ),
    Errand(
        SEARCH, "web:search", "news on a topic", "web_search",
        tuple({"query": query} for query in ("vyper release", "stake weighted routing")),
    ),
    Errand(
        COMPLETION, "text:completion", "one sentence summary", "completion",
        ("Summarise the market.", "Name the trend."),
    ),
)  # fmt: skip
CALLS = 2
"""How many calls a session of the story makes."""


def account(index: int) -> LocalAccount:
    """The development account of that number: 0 deploys, 1 to 12 operate, 13 to 17 are agents, 18 is its user's."""
    Account.enable_unaudited_hdwallet_features()
    made: LocalAccount = Account.from_mnemonic(MNEMONIC, account_path=f"m/44'/60'/0'/0/{index}")
    return made


def operator_account(position: int) -> LocalAccount:
    """The account of the operator at a position of OPERATORS, which registers node position + 1."""
    return account(1 + position)


def agent_account(position: int) -> LocalAccount:
    """The account of an agent, counted from 0."""
    return account(1 + len(OPERATORS) + position)


def user_account() -> LocalAccount:
    """The account of whoever plays with a demo that was kept."""
    return account(1 + len(OPERATORS) + AGENTS)
