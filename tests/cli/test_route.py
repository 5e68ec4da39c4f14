import pytest

from counterfoil.receipts import canonical, digest
from tests.support.chain import CATEGORY


def test_route__for_a_client__ranks_with_every_reason(busy, run):
    client = busy.world.by("alice").address
    found = run("route", CATEGORY, "--client", client)
    lines = found.out.splitlines()

    assert (found.code, found.err) == (0, "")
    assert lines[1].split()[:3] == ["place", "service", "price"]
    assert "price 1000 is above 120%" in found.out
    assert f"draw 2 of {client}, no cap: service " in found.out
    assert all(len(line) <= 100 for line in lines)


def test_route__as_json__is_the_receipt_that_an_agent_would_build(busy, run):
    client = busy.world.by("alice").address
    found = run("route", CATEGORY, "--client", client, "--cap", 110, "--json").json
    block = found["as_of"]["block"]
    receipt = busy.world.decide("alice", block=block, cap=110)

    assert found["digest"] == digest(receipt)
    assert found["decision"]["choice"] == receipt.choice
    assert found["decision"]["request"]["nonce"] == 2


def test_route__as_of_the_block_of_a_session__gives_its_choice_again(busy, run):
    facts = run("audit", "session", busy.sessions["first"], "--json").json["session"]
    at = facts["snapshot_block"]
    found = run("route", CATEGORY, "--client", facts["client"], "--at", at, "--nonce", 0, "--json").json

    assert found["decision"]["choice"] == facts["service_id"]
    assert found["digest"] == facts["decision"]
    assert run("route", CATEGORY, "--client", facts["client"], "--at", at, "--json").json == found


def test_route__in_an_unknown_category__exits_2_with_a_sentence(busy, run):
    found = run("route", "no:such", "--client", busy.world.by("alice").address)

    assert (found.code, found.out) == (2, "")
    assert found.err == "There are no routable candidates at this block, so there is nothing to choose.\n"


@pytest.mark.parametrize("options", [["--client", "me"], ["--client", "0x" + "1" * 40, "--cap", "-1"]])
def test_route__with_bad_options__exits_2(run, options):
    assert run("route", CATEGORY, *options).code == 2


def test_route__writes_nothing(busy, run):
    before = sorted(path.name for path in (busy.home / "receipts").iterdir())
    run("route", CATEGORY, "--client", busy.world.by("alice").address)

    assert sorted(path.name for path in (busy.home / "receipts").iterdir()) == before
    assert canonical(busy.world.decide("alice"))


def test_route__without_a_client__shows_everybodys_chances(busy, run):
    alone = run("route", CATEGORY, "--json").json["decision"]
    alice = run("route", CATEGORY, "--client", busy.world.by("alice").address, "--json").json["decision"]

    assert alone["request"]["client"] == "0x" + "0" * 40
    assert [one.get("weight") for one in alone["candidates"]] == [one.get("weight") for one in alice["candidates"]]


def test_route__with_a_cap_below_every_price__says_that_nobody_was_dropped(run):
    found = run("route", CATEGORY, "--cap", 5)

    assert "the cap 5 is below the price of all 6 candidates, so nobody was dropped" in found.out.replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([CATEGORY, "--cap", 2**256], "Invalid value for '--cap'"),
        ([CATEGORY, "--cap", 2**256 - 1], "Invalid value for '--cap'"),
        ([CATEGORY, "--nonce", 2**53], "Invalid value for '--nonce'"),
        (["No Category"], "Category 'No Category' is not a category's name.\n"),
    ],
)
def test_route__with_a_value_that_no_receipt_can_hold__names_the_option(run, options, words):
    found = run("route", *options)

    assert (found.code, found.out) == (2, "")
    assert words in found.err
    assert "equest." not in found.err


def test_route__with_long_sentences__leaves_no_blank_at_an_end(busy, run):
    found = run("route", CATEGORY, "--client", busy.world.by("alice").address, "--cap", 5)

    assert all(line == line.rstrip() for line in found.out.splitlines())
