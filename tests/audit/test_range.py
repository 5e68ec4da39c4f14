from dataclasses import replace
from fractions import Fraction

import pytest

from counterfoil.audit.model import Check, Outcome, Part, SessionAudit, SessionFacts
from counterfoil.audit.opening import open_auditor
from counterfoil.audit.range import audit_range, summarise
from counterfoil.audit.report import range_document
from counterfoil.reading import DamagedError
from counterfoil.routing.lottery import NO_CAP, Candidate, category_id, rank
from indexer.errors import QuestionError

WORD = "0x" + "ab" * 32
SEED = bytes(32)
MARKET = [Candidate(i, 100, 10 * i, 0, 0, 0, 5) for i in (1, 2, 3)]
FACTS = SessionFacts(
    session_id=WORD, client="0x" + "11" * 20, service_id=1, node_id=1, operator="0x" + "22" * 20,
    signer="0x" + "11" * 20, price=100, max_price=100, policy=1, nonce=0, attempt=0, snapshot_block=10,
    snapshot_hash=WORD, draw_seed="0x" + SEED.hex(), price_cap=NO_CAP, decision=WORD, opened_block=12,
    category_id="0x" + category_id("data:x").hex(),
)  # fmt: skip
FINE = (Check(Part.STATE, "choice", Outcome.OK, "fine"),)


def audit_of(checks=FINE, ranking=None, **changes):
    facts = replace(FACTS, **changes)
    drawn = rank(MARKET, SEED, facts.cap) if ranking is None else ranking
    return SessionAudit(facts.session_id, facts, "data:x", drawn, checks)


def test_audit_range__over_everything__counts_each_outcome(busy, auditor):
    steps = []
    found = audit_range(auditor, 0, 10_000, lambda done, total: steps.append((done, total)))

    assert len(found.audits) == len(busy.world.opened) == 18
    assert steps == [(i, 18) for i in range(1, 19)]
    assert {audit.session_id for audit in found.audits} == set(busy.world.opened)
    assert found.outcome is Outcome.MISMATCH
    assert (found.count(Outcome.OK), found.count(Outcome.MISMATCH), found.count(Outcome.UNKNOWN)) == (9, 7, 2)
    assert found.summary == "13 of 18 decisions replayed by state and by index, 7 mismatches"


def test_audit_range__over_honest_sessions__finds_them_all_replayed(busy, auditor):
    last = auditor.session(busy.sessions["failed over"]).facts.opened_block
    found = audit_range(auditor, 0, last)

    assert found.outcome is Outcome.OK
    assert found.summary == "8 of 8 decisions replayed by state and by index, 0 mismatches"


def test_audit_range__without_an_index__lists_sessions_from_logs(busy):
    with open_auditor(busy.settings(), "both") as both, open_auditor(busy.settings(), "state") as state:
        by_both, by_state = audit_range(both, 0, 60), audit_range(state, 0, 60)

    assert [audit.session_id for audit in by_state.audits] == [audit.session_id for audit in by_both.audits]
    assert by_state.shares == tuple(replace(share) for share in by_both.shares)
    assert by_state.summary.endswith("replayed by state, 0 mismatches")


def test_audit_range__with_a_session_hidden_by_the_index__still_finds_it(busy, tmp_path):
    hidden = busy.sessions["first"]
    edited = busy.edited(tmp_path, f"DELETE FROM session WHERE session_id = '{hidden}'")
    with open_auditor(busy.settings(database=f"sqlite:///{edited}")) as auditor:
        found = audit_range(auditor, 0, 10_000)

    assert hidden in {audit.session_id for audit in found.audits if audit.outcome is Outcome.MISMATCH}


def test_audit_range__of_clients__shows_skips_caps_and_ages(busy, auditor):
    found = audit_range(auditor, 0, 10_000)
    clients = {client.client: client for client in found.clients}
    bob, erin = (clients[busy.world.by(name).address] for name in ("bob", "erin"))

    assert (bob.sessions, bob.draws, bob.skipped, bob.caps) == (1, 1, 1, (110,))
    # Erin opened a session for each attempt: nothing was passed over.
    assert (erin.sessions, erin.draws, erin.skipped, erin.caps) == (2, 1, 0, ())
    assert found.skipped == sum(client.skipped for client in found.clients) >= 1
    assert found.ages[0] >= 1
    assert all(client.oldest_snapshot >= 1 for client in found.clients)


def test_audit_range__with_a_damaged_row__blames_that_session_alone(busy, tmp_path):
    damaged = busy.sessions["second"]
    edited = busy.edited(tmp_path, f"UPDATE session SET client = 'me' WHERE session_id = '{damaged}'")
    with open_auditor(busy.settings(database=f"sqlite:///{edited}")) as auditor:
        last = auditor.session(busy.sessions["failed over"]).facts.opened_block
        found = audit_range(auditor, 0, last)
        with pytest.raises(DamagedError, match="client of session 0x"):
            auditor.session("2")
    with (
        open_auditor(busy.settings(database=f"sqlite:///{edited}"), "index") as alone,
        pytest.raises(DamagedError, match="run `counterfoil index rebuild`"),
    ):
        audit_range(alone, 0, last)

    faults = {audit.session_id: audit.first_difference for audit in found.audits if audit.outcome is not Outcome.OK}
    assert list(faults) == [damaged]
    assert "A row of the index is damaged: client of session 0x" in faults[damaged]


@pytest.mark.parametrize(("first", "last"), [(5, 4), (-1, 4)])
def test_audit_range__with_no_range__says_so(auditor, first, last):
    with pytest.raises(QuestionError, match="are no range: give the first block, then the last"):
        audit_range(auditor, first, last)


def test_audit_range__with_no_sessions__is_ok(auditor):
    found = audit_range(auditor, 0, 1)

    assert (found.outcome, found.audits, found.shares, found.ages) == (Outcome.OK, (), (), ())
    assert found.summary == "0 of 0 decisions replayed by state, 0 mismatches"
    assert range_document(found)["snapshot_age"] is None


def test_summarise__of_two_draws__adds_up_promised_chances_exactly():
    winner, second = rank(MARKET, SEED).order[:2]
    found = summarise(
        1, 99, [audit_of(service_id=winner), audit_of(nonce=1, attempt=1, service_id=second)], lambda _: 40
    )
    weights = {service_id: terms.weight for service_id, terms in rank(MARKET, SEED).terms.items()}
    left = sum(weights.values()) - weights[winner]
    shares = {share.service_id: share for share in found.shares}

    assert sum(share.observed for share in found.shares) == sum(share.promised for share in found.shares) == 1
    assert shares[winner].promised == Fraction(weights[winner], sum(weights.values())) / 2
    assert shares[second].promised == (
        Fraction(weights[second], sum(weights.values())) + Fraction(weights[second], left)
    ) / 2  # fmt: skip
    assert (shares[winner].sessions, shares[winner].skipped, shares[winner].node_id) == (1, 1, 40)


def test_summarise__of_two_sessions_of_one_draw__counts_what_was_skipped_once():
    order = rank(MARKET, SEED).order
    audits = [audit_of(attempt=i, service_id=order[i]) for i in (1, 2)]
    found = summarise(1, 99, audits, lambda _: 1)

    assert [(share.service_id, share.skipped) for share in found.shares if share.skipped] == [(order[0], 1)]
    assert (found.clients[0].draws, found.clients[0].skipped) == (1, 1)


def test_summarise__of_pinned_or_unreplayed_sessions__leaves_them_out_of_the_shares():
    unread = replace(audit_of(nonce=1), ranking=None)
    found = summarise(1, 99, [audit_of(policy=0), unread, audit_of(attempt=3, nonce=2)], lambda _: 1)

    assert found.shares == ()
    assert found.clients[0].sessions == 3


def test_range_document__with_a_fault__holds_its_checks():
    wrong = (Check(Part.INDEX, "choice", Outcome.MISMATCH, "service 2 was served"),)
    document = range_document(summarise(1, 9, [audit_of(), audit_of(wrong, nonce=1, price_cap=7)], lambda _: 1))

    assert (document["sessions"], document["ok"], document["mismatches"], document["unchecked"]) == (2, 1, 1, 0)
    assert document["snapshot_age"] == {"least": 2, "median": 2, "greatest": 2}
    assert document["clients"][0]["price_caps"] == ["7"]
    assert [fault["first_difference"] for fault in document["faults"]] == ["service 2 was served"]
    share = next(share for share in document["shares"] if share["service_id"] == 1)
    assert (share["observed"], share["observed_exact"]) == ("100.0%", "1")
