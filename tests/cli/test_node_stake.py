"""Stake and earnings on a real chain: what is added, taken out, released and withdrawn."""

import pytest

from counterfoil.cli.output import moment
from tests.cli.test_node import words
from tests.support.chain import MIN_STAKE, STAKE_PER_SLOT

UNBONDING = 100
OTHER = "0x" + "ab" * 20


@pytest.fixture
def node(town, request):
    """A fresh node of an operator who is named after the test; gives the name and the id."""
    name = request.node.name
    return name, town.registry.service(town.node(name, MIN_STAKE * 2, 100)).node_id


def later(town, seconds):
    town.rpc("evm_increaseTime", seconds)
    town.rpc("evm_mine")


def test_stake__of_more__counts_at_once(town, operate, node):
    name, node_id = node
    found = operate("stake", node_id, MIN_STAKE, "--yes", "--json", by=name)

    assert found.code == 0
    assert town.registry.node(node_id).stake == MIN_STAKE * 3
    assert found.json == {
        "node_id": node_id, "stake": str(MIN_STAKE * 3), "unbonding": "0", "release_at": 0,
        "max_concurrent": str(MIN_STAKE * 3 // STAKE_PER_SLOT), "enough_to_be_routed": True,
        "transactions": found.json["transactions"],
    }  # fmt: skip
    assert len(found.json["transactions"]) == 1


def test_stake__of_more__says_what_it_pays_for_and_where_to_look(town, operate, node):
    name, node_id = node
    found = operate("stake", node_id, STAKE_PER_SLOT, "--yes", by=name)

    assert words(found.out).endswith(
        f"A stake of {MIN_STAKE * 2 + STAKE_PER_SLOT:,} pays for 5 sessions at a time. "
        f"Next: counterfoil node status {node_id}"
    )


def test_stake__without_an_allowance__approves_exactly_that_first(town, operate, node):
    name, node_id = node
    town.by(name).send(town.token.approve(town.registry.address, 0))
    found = operate("stake", node_id, 11, "--yes", "--json", by=name)

    assert (found.code, len(found.json["transactions"])) == (0, 2)
    assert town.registry.node(node_id).stake == MIN_STAKE * 2 + 11
    assert town.token.allowance(town.by(name).address, town.registry.address) == 0


@pytest.mark.parametrize(("command", "reason"), [("stake", "stake"), ("unstake", "unstake")])
def test_stake_and_unstake__of_nothing__are_refused_with_the_next_step(operate, node, command, reason):
    found = operate(command, node[1], 0, "--dry-run")

    assert found.code == 2
    assert found.err.endswith(f"registry: nothing to {reason}. Name an amount above 0.\n")


def test_unstake__below_the_least__says_what_it_does_before_and_after(town, operate, node):
    name, node_id = node
    dry = operate("unstake", node_id, MIN_STAKE + 1, "--dry-run", "--json", by=name)
    left = (
        f"A stake of {MIN_STAKE - 1:,} pays for 1 session at a time, and no agent is routed to the node: "
        f"that takes {MIN_STAKE:,}."
    )

    assert dry.json["notes"] == ["It is released 100 s after it is mined, and can be slashed until then.", left]
    assert town.registry.node(node_id).unbonding == 0
    found = operate("unstake", node_id, MIN_STAKE + 1, "--yes", by=name)
    state = town.registry.node(node_id)
    assert (state.stake, state.unbonding) == (MIN_STAKE - 1, MIN_STAKE + 1)
    assert state.release_at == town.chain.head().timestamp + UNBONDING
    assert words(found.out).endswith(
        f"{MIN_STAKE + 1:,} are released on {moment(state.release_at)}, to be withdrawn then. {left} "
        f"Next: counterfoil node withdraw {node_id}"
    )


def test_unstake__as_json__tells_the_state_that_the_chain_logged(town, operate, node):
    name, node_id = node
    found = operate("unstake", node_id, MIN_STAKE, "--yes", "--json", by=name).json
    del found["transactions"]

    assert found == {
        "node_id": node_id, "stake": str(MIN_STAKE), "unbonding": str(MIN_STAKE),
        "release_at": town.registry.node(node_id).release_at, "max_concurrent": "2", "enough_to_be_routed": True,
    }  # fmt: skip


def test_unstake__again__says_that_all_of_it_waits_anew(operate, node):
    name, node_id = node
    operate("unstake", node_id, 7, "--yes", by=name)
    dry = operate("unstake", node_id, 5, "--dry-run", "--json", by=name)

    assert "The 7 that are unbonding already wait those 100 s anew." in dry.json["notes"]


@pytest.mark.parametrize("how", ["--dry-run", "--yes"])
def test_unstake__of_more_than_the_stake__is_refused_with_how_much_there_is(town, operate, node, how):
    name, node_id = node
    found = operate("unstake", node_id, MIN_STAKE * 2 + 1, how, by=name)

    assert (found.code, found.out) == (2, "")
    assert found.err == (
        f"The chain refuses to take {MIN_STAKE * 2 + 1:,} of the stake out of node {node_id}: registry: more than the "
        f"stake. Node {node_id} stakes {MIN_STAKE * 2:,}: name at most that.\n"
    )


def test_withdraw__of_released_stake__pays_the_operator(town, operate, node):
    name, node_id = node
    operate("unstake", node_id, 321, "--yes", by=name)
    address = town.by(name).address
    before = town.token.balance_of(address)
    early = operate("withdraw", node_id, "--yes", by=name)
    release = moment(town.registry.node(node_id).release_at)
    later(town, UNBONDING)
    dry = operate("withdraw", node_id, "--dry-run", "--json")
    found = operate("withdraw", node_id, "--yes", "--json", by=name)

    assert early.code == 2
    assert early.err.endswith(f"registry: still unbonding. The 321 are released on {release}: withdraw them then.\n")
    assert dry.json["steps"][0]["accepted"] is True
    assert (found.json["withdrawn"], found.json["to"], found.json["node_id"]) == ("321", address, node_id)
    assert town.token.balance_of(address) == before + 321
    assert town.registry.node(node_id).unbonding == 0


def test_withdraw__of_nothing__names_both_ways(operate, node):
    found = operate("withdraw", node[1], "--dry-run")

    assert found.code == 2
    assert found.err.endswith(
        f"registry: nothing unbonding. Take stake out with counterfoil node unstake {node[1]} AMOUNT first. "
        "Earnings are withdrawn with --earnings.\n"
    )


@pytest.fixture
def earner(town, node):
    """A node whose operator earned 300 in one session."""
    name, node_id = node
    service = next(one for one in range(1, 99) if town.registry.service(one).node_id == node_id)
    session = town.route("client", pinned=service)
    town.settle(session, "client", name, calls=3)
    return name, node_id


def test_withdraw__of_earnings__pays_the_account(town, operate, earner):
    name, node_id = earner
    address = town.by(name).address
    before = town.token.balance_of(address)
    dry = operate("withdraw", node_id, "--earnings", "--dry-run", "--json")
    found = operate("withdraw", "--earnings", "--yes", "--json", by=name)

    assert [step["sentence"] for step in dry.json["steps"]] == [
        f"withdraw all earnings of {address}, 300, to {address}"
    ]
    assert (found.json["account"], found.json["withdrawn"], found.json["to"]) == (address, "300", address)
    assert town.token.balance_of(address) == before + 300
    assert town.manager.credit_of(address) == 0


def test_withdraw__of_earnings_to_another__pays_that_one(town, operate, earner):
    name, node_id = earner
    before = town.token.balance_of(OTHER)
    found = operate("withdraw", node_id, "--earnings", "--to", OTHER, "--yes", by=name)

    assert words(found.out).endswith(
        f"300 of earnings were paid to {OTHER}. Next: counterfoil nodes --operator {town.by(name).address}"
    )
    assert town.token.balance_of(OTHER) == before + 300


def test_withdraw__of_earnings_that_are_none__is_refused(operate, node):
    found = operate("withdraw", node[1], "--earnings", "--dry-run")

    assert found.code == 2
    assert found.err.endswith("sessions: no credit. There is nothing to withdraw yet: settle a session first.\n")


def test_withdraw__to_the_manager_itself__is_refused(town, operate, earner):
    found = operate("withdraw", earner[1], "--earnings", "--to", town.manager.address, "--dry-run")

    assert found.code == 2
    assert found.err.endswith("sessions: bad receiver. Name another account with --to.\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Name a node for its released stake, or say --earnings for what sessions paid."),
        ((1, "--to", OTHER), "Released stake is paid to the operator alone: leave --to out, or say --earnings."),
        (
            ("--earnings", "--dry-run"),
            "Nobody is named whose earnings are meant: name a node, or set COUNTERFOIL_KEYSTORE.",
        ),
    ],
)
def test_withdraw__of_nobody_knows_what__is_refused_with_the_ways(operate, arguments, sentence):
    found = operate("withdraw", *arguments)

    assert (found.code, found.out, found.err) == (2, "", sentence + "\n")
