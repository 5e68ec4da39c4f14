"""Every reason for which a contract may refuse an operator's command has a next step: the sources are read for them."""

import re

import pytest

from counterfoil.cli.remedies import FALLBACK, REMEDIES, remedy
from tests.support.chain import ROOT

CONTRACTS = ROOT / "contracts"
OURS = {
    "NodeRegistry": (
        "register_node", "set_endpoint", "set_capability", "add_stake", "request_unstake", "withdraw_stake",
        "list_service", "set_price", "set_active",
    ),
    "SessionManager": ("settle", "withdraw"),
}  # fmt: skip
# A label that is checked here is no reason: its caller asserts what it gives. A field that is too wide cannot come
# about, since every amount, price, count and time is checked before it is packed.
UNREACHABLE = {"packing: field too wide"}


def functions(path):
    """The body of every function of a source, by name."""
    parts = re.split(r"^def (\w+)\(", path.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def reasons(contract, name, seen):
    """Every reason that a function, or what it calls, may give."""
    if (contract, name) in seen:
        return set()
    seen.add((contract, name))
    folder = CONTRACTS if contract in OURS else CONTRACTS / "modules"
    body = functions(folder / f"{contract}.vy")[name]
    found = set(re.findall(r'"(\w+: [^"]+)"', body))
    for place, called in re.findall(r"\b(\w+)\.(_\w+)\(", body):
        found |= reasons(contract if place == "self" else place, called, seen)
    return found


def reachable():
    return {reason for contract, names in OURS.items() for name in names for reason in reasons(contract, name, set())}


def test_reasons__of_the_sources__are_found_through_internals_and_modules():
    assert reasons("NodeRegistry", "withdraw_stake", set()) >= {
        "registry: unknown node", "registry: not the operator", "registry: nothing unbonding",
        "registry: still unbonding", "registry: held by a dispute", "token: transfer refused",
    }  # fmt: skip
    assert "registry: price too large" in reasons("NodeRegistry", "set_price", set())
    assert "registry: not the court" not in reachable()


@pytest.mark.parametrize("reason", sorted(reachable() - UNREACHABLE))
def test_remedy__of_a_reason_that_these_commands_meet__is_its_own_sentence(reason):
    assert remedy(reason) != FALLBACK
    assert remedy(reason).endswith(".")
    assert remedy(reason)[0].isupper()


def test_remedies__of_the_table__are_all_of_reasons_that_there_are():
    of_the_token = set(re.findall(r'"(token: [^"]+)"', (CONTRACTS / "testing" / "TestToken.vy").read_text()))

    assert set(REMEDIES) <= reachable() | of_the_token


@pytest.mark.parametrize("reason", ["", "never heard of", "registry: not offered to you"])
def test_remedy__of_another_reason__is_a_next_step_all_the_same(reason):
    assert remedy(reason) == FALLBACK
