import json
import shutil
import sqlite3
from contextlib import closing

import pytest

from counterfoil.audit.model import Outcome, Part
from counterfoil.audit.opening import open_auditor
from counterfoil.receipts import MAX_BYTES, canonical
from indexer.errors import DeploymentError, QuestionError, StoreError, UserError, WrongChainError
from tests.support.chain import unused_url
from tests.support.receipts import example

HONEST = ("first", "second", "next", "relaxed", "pinned", "writer", "failed over")


def outcomes(found):
    return {part: found.outcome_of(part) for part in Part}


def sentences(found, outcome):
    return [(check.part, check.name, check.sentence) for check in found.checks if check.outcome is outcome]


@pytest.mark.parametrize("name", HONEST)
def test_session__of_an_honest_client__replays_by_state_and_by_index(busy, auditor, name):
    found = auditor.session(busy.sessions[name])

    assert found.outcome is Outcome.OK
    assert set(outcomes(found).values()) == {Outcome.OK}
    assert [check.name for check in found.checks if check.part is Part.STATE] == [
        "session id", "snapshot", "seed", "candidates", "choice", "price", "lens",
    ]  # fmt: skip
    assert found.first_difference is None
    assert found.facts.session_id == busy.sessions[name]


def test_session__named_by_number_or_prefix__is_the_same_session(busy, auditor):
    wanted = busy.sessions["first"]

    assert auditor.session("1").session_id == wanted
    assert auditor.session(wanted[:10]).session_id == wanted
    assert auditor.session(wanted.upper().replace("0X", "0x")).session_id == wanted


def test_session__of_the_next_attempt__replays_that_place_of_the_order(busy, auditor):
    found = auditor.session(busy.sessions["next"])

    assert found.facts.attempt == 1
    assert found.facts.cap == 110
    assert found.facts.service_id == found.ranking.order[1]
    assert found.category == "data:crypto-price"


def test_session__with_a_full_id__replays_by_state_alone_without_an_index(busy, tmp_path):
    settings = busy.settings(database=f"sqlite:///{tmp_path}/none.sqlite")
    with open_auditor(settings, "state") as auditor:
        found = auditor.session(busy.sessions["next"])

    assert outcomes(found) == {Part.STATE: Outcome.OK, Part.INDEX: None, Part.RECEIPT: Outcome.OK}
    assert found.outcome is Outcome.OK


def test_session__by_both_without_an_index__tells_what_is_missing(busy, tmp_path):
    with open_auditor(busy.settings(database=f"sqlite:///{tmp_path}/none.sqlite")) as auditor:
        found = auditor.session(busy.sessions["next"])

    assert outcomes(found)[Part.STATE] is Outcome.OK
    assert found.outcome is Outcome.UNKNOWN
    ((part, name, sentence),) = sentences(found, Outcome.UNKNOWN)
    assert (part, name) == (Part.INDEX, "session")
    assert "build it with `counterfoil index run`" in sentence
    assert not (tmp_path / "none.sqlite").exists()


def test_session__by_index_alone__needs_no_chain(busy):
    with open_auditor(busy.settings(rpc_url=unused_url()), "index") as auditor:
        found = auditor.session(busy.sessions["next"])

    assert outcomes(found) == {Part.STATE: None, Part.INDEX: Outcome.OK, Part.RECEIPT: Outcome.OK}


@pytest.mark.parametrize("node_id", range(1, 7))
def test_session__with_any_stake_edited_in_the_index__fails_by_name_while_state_passes(busy, tmp_path, node_id):
    edited = busy.edited(tmp_path, f"UPDATE node_stake SET stake = stake + 1 WHERE node_id = {node_id}")
    with open_auditor(busy.settings(database=f"sqlite:///{edited}")) as auditor:
        found = auditor.session(busy.sessions["first"])
    stake = busy.world.registry.node(node_id).stake

    assert outcomes(found) == {Part.STATE: Outcome.OK, Part.INDEX: Outcome.MISMATCH, Part.RECEIPT: Outcome.OK}
    assert found.first_difference == (
        f"candidate {node_id}: stake is {stake + 1} in the index and {stake} in the receipt"
    )


def test_session__with_an_edited_stake_and_no_receipt__compares_with_the_chain(busy, tmp_path):
    edited = busy.edited(tmp_path, "UPDATE node_stake SET stake = 5 WHERE node_id = 3")
    with open_auditor(busy.settings(database=f"sqlite:///{edited}")) as auditor:
        found = auditor.session(busy.sessions["lost receipt"])

    assert found.outcome is Outcome.MISMATCH
    assert found.first_difference.startswith("candidate 3: ")
    assert found.first_difference.endswith("5 in the index and 3000000 on chain")


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE service SET price = price + 1 WHERE service_id = 2", "candidate 2: price is 106 in the index and 105"),
        (
            "UPDATE service SET active = 0 WHERE service_id = 4",
            "candidate 4: is not routable in the index and is listed",
        ),
        (
            "UPDATE node_load SET active_sessions = 9 WHERE node_id = 1",
            "candidate 1: active_sessions is 9 in the index",
        ),
        (
            "UPDATE node_reputation SET rating_count = 1, rating_sum = 100 WHERE node_id = 5",
            "candidate 5: rating_sum is 100 in the index and 0 in the receipt",
        ),
        (f"UPDATE node_stake SET stake = '{2**200:078d}' WHERE node_id = 2", "candidate 2: stake "),
        ("UPDATE node_stake SET stake = 'much' WHERE node_id = 2", "A row of the index is damaged: "),
        ("UPDATE session SET price = price + 1", "session: price is "),
        ("UPDATE session SET max_price = max_price + 1", "session: max_price is "),
        ("UPDATE session SET service_id = 7", "session: service_id is 7 in the index and "),
        ("UPDATE session SET decision = draw_seed", "session: decision is 0x"),
        ("UPDATE session SET policy = 300", "A row of the index is damaged: policy of session 0x"),
        ("UPDATE session SET client = 'me'", "A row of the index is damaged: client of session 0x"),
        ("UPDATE block SET hash = parent_hash || '' WHERE number > 30", "has the hash 0x"),
    ],
)
def test_session__with_a_row_edited_in_the_index__fails_by_name_while_state_passes(busy, tmp_path, statement, sentence):
    with open_auditor(busy.settings(database=f"sqlite:///{busy.edited(tmp_path, statement)}")) as auditor:
        found = auditor.session(busy.sessions["first"])

    assert outcomes(found) == {Part.STATE: Outcome.OK, Part.INDEX: Outcome.MISMATCH, Part.RECEIPT: Outcome.OK}
    assert sentence in found.first_difference


@pytest.mark.parametrize(
    "column", ["price", "nonce", "attempt", "snapshot_block", "price_cap", "service_id", "node_id", "policy"]
)
def test_session__by_index_alone_with_a_term_edited__does_not_give_its_own_id(busy, tmp_path, column):
    edited = busy.edited(tmp_path, f"UPDATE session SET {column} = 1 + (CAST({column} AS INTEGER) % 5)")
    with open_auditor(busy.settings(database=f"sqlite:///{edited}"), "index") as auditor:
        found = auditor.session(busy.sessions["first"])

    assert found.first_difference.startswith("the session's terms in the index give the id 0x")


def test_session__deleted_from_the_index__is_a_mismatch_by_index(busy, tmp_path):
    gone = busy.sessions["first"]
    edited = busy.edited(tmp_path, f"DELETE FROM session WHERE session_id = '{gone}'")
    with open_auditor(busy.settings(database=f"sqlite:///{edited}")) as auditor:
        found = auditor.session(gone)

    assert outcomes(found)[Part.STATE] is Outcome.OK
    assert found.first_difference.startswith("it is missing in the index, although block ")


def test_session__invented_in_the_index__is_a_mismatch_by_state(busy, tmp_path):
    invented = "0x" + "ab" * 32
    edited = busy.edited(
        tmp_path, f"UPDATE session SET session_id = '{invented}' WHERE session_id = '{busy.sessions['first']}'"
    )
    with open_auditor(busy.settings(database=f"sqlite:///{edited}")) as auditor:
        found = auditor.session(invented)

    assert outcomes(found)[Part.STATE] is Outcome.MISMATCH
    assert found.first_difference.startswith("it is missing on chain, although block ")


def test_session__with_another_service_served__names_the_one_that_the_draw_gives(busy, auditor):
    found = auditor.session(busy.sessions["other service"])
    first, second = found.ranking.order[:2]

    assert set(outcomes(found).values()) == {Outcome.MISMATCH}
    assert sentences(found, Outcome.MISMATCH) == [
        (Part.STATE, "choice", f"service {second} was served, attempt 0 of the draw is service {first} on chain"),
        (Part.INDEX, "choice", f"service {second} was served, attempt 0 of the draw is service {first} in the index"),
        (Part.RECEIPT, "terms", f"choice is {first} in the receipt and {second} on chain"),
    ]


def test_session__with_a_receipt_that_lies_of_a_stake__names_the_candidate(busy, auditor):
    found = auditor.session(busy.sessions["lying receipt"])

    assert outcomes(found)[Part.RECEIPT] is Outcome.OK
    assert found.first_difference == "candidate 2: stake is 2000000 on chain and 2000001 in the receipt"


def test_session__that_commits_to_anothers_receipt__is_a_mismatch(busy, auditor):
    found = auditor.session(busy.sessions["foreign receipt"])

    assert outcomes(found)[Part.RECEIPT] is Outcome.MISMATCH
    assert "in the receipt and" in found.first_difference


def test_session__that_commits_to_no_canonical_receipt__is_a_mismatch(busy, auditor):
    found = auditor.session(busy.sessions["bad receipt"])

    assert found.first_difference.startswith("the committed receipt is not valid: the receipt is not in canonical form")


def test_session__with_a_lost_receipt__replays_and_says_what_is_missing(busy, auditor):
    found = auditor.session(busy.sessions["lost receipt"])

    assert outcomes(found) == {Part.STATE: Outcome.OK, Part.INDEX: Outcome.OK, Part.RECEIPT: Outcome.UNKNOWN}
    assert found.outcome is Outcome.UNKNOWN
    ((_, _, sentence),) = sentences(found, Outcome.UNKNOWN)
    assert sentence.endswith(".json is missing: ask the session's client for it and put it there")


def test_session__that_commits_to_nothing__says_so(busy, auditor):
    found = auditor.session(busy.sessions["no receipt"])

    assert sentences(found, Outcome.UNKNOWN) == [(Part.RECEIPT, "digest", "the session committed to no receipt")]


def test_session__of_a_policy_without_replay__says_which(busy, auditor):
    found = auditor.session(busy.sessions["other policy"])

    assert (Part.STATE, "choice", "policy NODE_SCORE cannot be replayed by this version: upgrade") in sentences(
        found, Outcome.UNKNOWN
    )


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("far attempt", "attempt 4 is past the "),
        ("pinned attempt", "attempt 1 of a pin, which has one service only"),
    ],
)
def test_session__with_an_attempt_past_the_order__is_a_mismatch(busy, auditor, name, sentence):
    found = auditor.session(busy.sessions[name])

    assert outcomes(found)[Part.STATE] is Outcome.MISMATCH
    assert sentence in found.first_difference


def test_session__whose_price_moved_after_the_snapshot__is_told_and_is_no_mismatch(busy, auditor):
    found = auditor.session(busy.sessions["moved price"])
    price = found.facts.price

    assert found.outcome is Outcome.OK
    assert (
        Part.STATE,
        "price",
        f"price {price} with max_price {price + 2}, the snapshot's price is {price - 1}",
    ) in sentences(found, Outcome.NOTE)


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:0], lambda _: canonical(example())])
def test_session__with_a_damaged_or_foreign_copy_of_its_receipt__cannot_be_checked(busy, tmp_path, damage):
    shutil.copytree(busy.home, tmp_path / "home")
    settings = busy.settings(home=tmp_path / "home")
    with open_auditor(settings) as auditor:
        decision = auditor.session("1").facts.decision
        path = auditor.receipts.path(decision)
        path.write_bytes(damage(path.read_bytes()))
        found = auditor.session("1")

    assert outcomes(found) == {Part.STATE: Outcome.OK, Part.INDEX: Outcome.OK, Part.RECEIPT: Outcome.UNKNOWN}
    ((_, _, sentence),) = sentences(found, Outcome.UNKNOWN)
    assert "it was cut or changed, or is another session's; ask the session's client for it again" in sentence


def test_session__that_nobody_knows__says_where_it_was_looked_for(busy, auditor):
    with pytest.raises(QuestionError, match=r"There is no session 0x(12)+ on chain or in the index: check the id"):
        auditor.session("0x" + "12" * 32)
    with pytest.raises(QuestionError, match="The index holds no session '0x12121212'"):
        auditor.session("0x12121212")
    with pytest.raises(QuestionError, match="The index holds no session '99'"):
        auditor.session("99")


def test_session__with_a_prefix_and_no_index__asks_for_the_full_id(busy, tmp_path):
    settings = busy.settings(database=f"sqlite:///{tmp_path}/none.sqlite")
    with (
        open_auditor(settings, "state") as auditor,
        pytest.raises(QuestionError, match="give the full id of 0x and"),
    ):
        auditor.session(busy.sessions["first"][:10])


def test_open_auditor__with_a_dead_rpc__says_how_to_name_another(busy):
    with (
        pytest.raises(UserError, match=r"does not answer .*: start the chain, or name another with --rpc"),
        open_auditor(busy.settings(rpc_url=unused_url())),
    ):
        pass


def test_open_auditor__with_no_deployment__says_how_to_deploy(busy, tmp_path):
    with (
        pytest.raises(DeploymentError, match="deploy with `ape run deploy`"),
        open_auditor(busy.settings(home=tmp_path)),
    ):
        pass


@pytest.mark.parametrize("changes", [{"chain_id": 1}, {"genesis_hash": "0x" + "ff" * 32}])
def test_open_auditor__with_another_chains_deployment__says_so(busy, tmp_path, changes):
    document = json.loads((busy.home / "deployments" / "31337.json").read_text())
    (tmp_path / "other.json").write_text(json.dumps(document | changes))
    with (
        pytest.raises(WrongChainError, match="name the right one with --rpc or --deployment"),
        open_auditor(busy.settings(deployment=tmp_path / "other.json")),
    ):
        pass


def test_open_auditor__with_an_index_of_another_deployment__does_not_use_it(busy, tmp_path):
    edited = busy.edited(tmp_path, "UPDATE meta SET value = '1' WHERE name = 'chain_id'")
    with open_auditor(busy.settings(database=f"sqlite:///{edited}")) as auditor:
        assert auditor.index is None
        assert "is of another deployment: name the right one with --database" in auditor.index_problem


def test_open_auditor__by_index_without_an_index__says_how_to_build_it(busy, tmp_path):
    with (
        pytest.raises(StoreError, match="build it with `counterfoil index run`"),
        open_auditor(busy.settings(database=f"sqlite:///{tmp_path}/none.sqlite"), "index"),
    ):
        pass


def test_session__with_a_table_missing_from_the_index__is_still_replayed_by_state(busy, tmp_path):
    edited = busy.edited(tmp_path)
    with closing(sqlite3.connect(edited)) as connection:
        connection.execute("DROP TABLE session")
    with open_auditor(busy.settings(database=f"sqlite:///{edited}")) as auditor:
        found = auditor.session(busy.sessions["first"])

    assert outcomes(found) == {Part.STATE: Outcome.OK, Part.INDEX: Outcome.UNKNOWN, Part.RECEIPT: Outcome.OK}
    assert found.checks[-3].sentence.startswith("The index ")


def test_session__with_an_unreadable_receipt__cannot_be_checked(busy, tmp_path):
    home = shutil.copytree(busy.home, tmp_path / "home")
    with open_auditor(busy.settings(home=home)) as auditor:
        decision = auditor.session("1").facts.decision
        with auditor.receipts.path(decision).open("ab") as file:
            file.write(b" " * MAX_BYTES)
        found = auditor.session("1")

    ((_, _, sentence),) = sentences(found, Outcome.UNKNOWN)
    assert "is larger than any receipt" in sentence


def test_session__whose_service_is_missing_from_the_index__is_a_mismatch_or_unread(busy, tmp_path):
    edited = busy.edited(tmp_path, "DELETE FROM service WHERE service_id = 2")
    with open_auditor(busy.settings(database=f"sqlite:///{edited}")) as auditor:
        found = auditor.session(busy.sessions["first"])

    assert outcomes(found)[Part.STATE] is Outcome.OK
    assert found.outcome is not Outcome.OK
