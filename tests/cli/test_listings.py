import pytest

from counterfoil.cli import output
from tests.support.chain import CATEGORY


def test_services__of_a_category__lists_them_as_of_the_newest_block(busy, run):
    found = run("services", "--category", CATEGORY)
    lines = found.out.splitlines()

    assert (found.code, found.err) == (0, "")
    assert lines[0].startswith(f"as of block {busy.world.chain.head().number} (0x")
    assert lines[1].split() == ["service", "category", "node", "price", "stake", "rating", "sessions", "state"]
    assert len(lines) == 2 + 6
    assert all(len(line) <= 100 for line in lines)
    rows = run("services", "--category", CATEGORY, "--json").json["services"]
    assert [(row["service_id"], row["price"], row["stake"]) for row in rows][5] == (6, "1000", "50000000")


def test_services__as_of_an_earlier_block__are_those_of_then(busy, run):
    block = run("service", 2, "--json").json["as_of"]["block"]
    early = busy.world.chain.deployment.contracts["RoutingLens"].block

    assert run("services", "--at", early, "--json").json["services"] == []
    assert len(run("services", "--at", busy.world.chain.block(block).hash, "--json").json["services"]) == 7


def test_services__by_pages__say_how_to_go_on(run):
    first = run("services", "--limit", 3)
    rest = run("services", "--limit", 4, "--after", 3, "--json")

    assert first.out.splitlines()[-1] == "more with --after 3"
    assert [row["service_id"] for row in rest.json["services"]] == [4, 5, 6, 7]
    assert rest.json["next"] is None


@pytest.mark.parametrize("at", ["-1", "x", "0x12", "9" * 30])
def test_services__as_of_no_block__exits_2(run, at):
    found = run("services", "--at", at)

    assert found.code == 2
    assert "A block is its number, or its hash" in found.err


def test_services__as_of_an_unknown_block__exits_2_with_the_next_step(run):
    found = run("services", "--at", 999_999)

    assert (found.code, found.out) == (2, "")
    assert "run `counterfoil index run` until it is there" in found.err


def test_service__by_id__shows_what_counts(run):
    found = run("service", 6)

    assert found.code == 0
    for words in ("data:crypto-price", "1,000", "50,000,000", "http://whale.test", "ipfs://whale", "routable"):
        assert words in found.out
    assert run("service", 6, "--json").json["service"]["stake"] == "50000000"


def test_service__that_is_not_there__exits_2_with_the_next_step(run):
    found = run("service", 99)

    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("There is no service 99 as of block ")


def test_nodes__of_an_operator__are_its_own(busy, run):
    operator = busy.world.by("whale").address
    found = run("nodes", "--operator", operator.upper().replace("0X", "0x"), "--json")

    assert [row["endpoint"] for row in found.json["nodes"]] == ["http://whale.test"]
    assert len(run("nodes").out.splitlines()) == 2 + 7
    assert run("nodes", "--limit", 2).out.splitlines()[-1] == "more with --after 2"
    assert "an address is 0x and 40" in run("nodes", "--operator", "me").err


def test_sessions__of_a_client__are_numbered_in_order(busy, run):
    found = run("sessions", "--client", busy.world.by("alice").address, "--json")

    assert [row["number"] for row in found.json["sessions"]] == [1, 2]
    assert [row["status"] for row in found.json["sessions"]] == ["settled", "open"]
    assert found.json["sessions"][0]["price_cap"] is None
    assert len(run("sessions", "--status", "settled", "--json").json["sessions"]) == 1
    table = run("sessions", "--limit", 2)
    assert table.out.splitlines()[-1] == "more with --after 2"
    assert all(len(line) <= 100 for line in table.out.splitlines())


def test_session__by_number_or_prefix__is_shown(busy, run):
    wanted = busy.sessions["first"]
    by_number = run("session", 1)

    assert by_number.code == 0
    assert f"{wanted} (number 1)" in by_number.out
    assert "LOTTERY, draw 0, attempt 0, cap none" in by_number.out
    assert run("session", wanted[:12], "--json").json["session"]["session_id"] == wanted
    assert "cap 110" in run("session", busy.sessions["next"]).out


@pytest.mark.parametrize("session", ["99", "0x" + "56" * 32])
def test_session__that_is_not_there__exits_2_with_the_next_step(run, session):
    found = run("session", session)

    assert (found.code, found.out) == (2, "")
    assert found.err.startswith(f"There is no session {session} as of block ")


@pytest.mark.parametrize("command", [("services",), ("service", 1), ("nodes",), ("sessions",), ("session", 1)])
def test_listing__without_an_index__exits_2_with_the_next_step(run, tmp_path, command):
    found = run(*command, home=tmp_path / "none")

    assert (found.code, found.out) == (2, "")
    assert found.err.endswith("build it with `counterfoil index run`.\n")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("command", [("services",), ("service", 1), ("nodes",), ("route", CATEGORY)])
def test_listing__of_a_damaged_row__exits_2_with_the_next_step(busy, run, tmp_path, command):
    edited = busy.edited(tmp_path, "UPDATE node_stake SET stake = 'much' WHERE node_id = 1")
    found = run(*command, "--database", edited)

    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("A row of the index is damaged: ")
    assert found.err.endswith("run `counterfoil index rebuild`.\n")


@pytest.mark.parametrize("command", [("services",), ("audit", "session", 1, "--by", "index"), ("index", "status")])
def test_listing__of_a_file_that_is_no_index__exits_2_with_a_sentence(run, tmp_path, command):
    (tmp_path / "text.sqlite").write_text("this is no database, and long enough to look like a file of one " * 20)
    found = run(*command, "--database", tmp_path / "text.sqlite")

    assert (found.code, found.out) == (2, "")
    assert len(found.err.splitlines()) == 1


def test_plain__with_a_hostile_text__is_harmless():
    assert output.plain("a\x1b[31m\nb[red]").plain == "a\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}b[red]"


@pytest.mark.parametrize(
    ("total", "count", "words"), [(0, 0, "unrated"), (370, 4, "92.5 (4)"), (0, 1, "0.0 (1)"), (200, 3, "66.6 (3)")]
)
def test_rating__with_a_count__is_a_mean_cut_to_one_digit(total, count, words):
    assert output.rating(total, count) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "1970-01-01 00:00:00 UTC"), (1_798_761_599, "2026-12-31 23:59:59 UTC"), (2**64, f"second {2**64}")],
)
def test_moment__of_seconds__is_a_time_or_stays_a_number(seconds, words):
    assert output.moment(seconds) == words
