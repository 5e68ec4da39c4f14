"""Settling by hand on a real chain, from the file of vouchers that a node leaves behind."""

from contextlib import closing

import pytest

from counterfoil.chain.contracts import SessionStatus
from counterfoil.chain.typed_data import voucher
from counterfoil.node.book import Answer, Known
from counterfoil.node.node import book_path, open_book
from counterfoil.node.vouchers import Voucher
from indexer import service as index
from indexer.settings import Settings
from tests.cli.test_node import words
from tests.support.chain import MIN_STAKE

PRICE = 100
DEPOSIT = PRICE * 10


@pytest.fixture(scope="module")
def service(town):
    return town.node("nora", MIN_STAKE * 50, PRICE)


@pytest.fixture
def session(town, service):
    """An open session with nora's node."""
    return town.route("client", pinned=service)


def path_of(town, service):
    return book_path(town.home, town.registry.service(service).node_id)


def book_of(town, service):
    return closing(open_book(town.chain, town.home, town.registry.service(service).node_id))


def took(town, service, session, calls, signer="client"):
    """Nora's node served so many calls, and was ended: the book holds the last voucher."""
    known = Known(session, town.by("client").address, PRICE, 1, 1)
    with book_of(town, service) as book:
        for number in range(1, calls + 1):
            signed = voucher(town.chain.chain_id, town.manager.address, session, PRICE * number, number)
            book.hold(known, Voucher(session, PRICE * number, number, signed.sign(town.by(signer).account)))
            book.keep(session, Answer(200, {}, b"{}"))


def test_settle__by_the_last_voucher__pays_it_and_frees_the_slot(town, operate, service, session):
    took(town, service, session, 3)
    operator = town.by("nora").address
    credit, active = town.manager.credit_of(operator), town.manager.active_sessions(1)
    dry = operate("settle", session, "--dry-run", "--json")
    found = operate("settle", session, "--yes", "--json", by="nora")

    assert (dry.code, dry.json["from"]) == (0, operator)
    assert dry.json["steps"][0]["sentence"] == f"settle session {session} at 300 for 3 calls"
    assert dry.json["notes"] == [f"The client gets {DEPOSIT - 300} of the deposit back; the session ends."]
    state = town.manager.session(session)
    assert (state.status, state.paid, state.calls) == (SessionStatus.SETTLED, 300, 3)
    assert town.manager.credit_of(operator) == credit + 300
    assert town.manager.active_sessions(1) == active - 1
    assert (found.json["session_id"], found.json["paid"], found.json["calls"]) == (session, "300", 3)
    assert len(found.json["transactions"]) == 1


def test_settle__again__sends_nothing(town, operate, service, session):
    took(town, service, session, 1)
    operate("settle", session, "--yes", by="nora")
    before = town.chain.head().number
    found = operate("settle", session, "--yes", "--json", by="nora")

    assert (found.code, found.json) == (0, {"session_id": session, "paid": "100", "calls": 1, "transactions": []})
    assert "is settled already, nothing was sent: 100 paid for 1 call." in words(operate("settle", session).out)
    assert town.chain.head().number == before


def test_settle__at_zero__pays_nothing(town, operate, session):
    found = operate("settle", session, "--zero", "--yes", by="nora")

    state = town.manager.session(session)
    assert (state.status, state.paid, state.calls) == (SessionStatus.SETTLED, 0, 0)
    assert words(found.out).endswith(
        f"Session {session} is settled: 0 paid for 0 calls. Next: counterfoil node withdraw --earnings"
    )


def test_settle__without_a_voucher__is_refused_and_makes_no_file(town, operate):
    other = town.node("otto", MIN_STAKE * 50, PRICE)
    path = path_of(town, other)
    found = operate("settle", town.route("client", pinned=other), "--dry-run")

    assert (found.code, found.out) == (2, "")
    assert found.err == (
        f"{path} holds no voucher of this session: run this where the node ran (--home), "
        "or settle at zero with --zero.\n"
    )
    assert not path.exists()


def test_settle__at_zero_beside_a_voucher__is_refused(town, operate, service, session):
    took(town, service, session, 2)
    found = operate("settle", session, "--zero", "--yes", by="nora")

    assert found.code == 2
    assert found.err == (
        f"{path_of(town, service)} holds a voucher of this session over 200: leave --zero out to be paid.\n"
    )
    assert town.manager.session(session).status == SessionStatus.OPEN


def test_settle__while_the_node_runs__says_so_and_sends_nothing(town, operate, service, session):
    took(town, service, session, 1)
    before = town.chain.head().number
    with book_of(town, service):
        found = operate("settle", session, "--yes", by="nora")

    assert (found.code, found.out) == (2, "")
    assert found.err.startswith(f"Another process serves this node with the book {path_of(town, service)}")
    assert town.chain.head().number == before


def test_settle__by_a_voucher_of_another_signer__is_refused_by_the_chain(town, operate, service, session):
    took(town, service, session, 1, signer="somebody")
    found = operate("settle", session, "--dry-run")

    assert found.code == 2
    assert "sessions: bad voucher. The voucher is not of the session's signer" in found.err


def test_settle__of_another_operators_session__is_told(town, operate, session):
    found = operate("settle", session, "--zero", "--yes", by="bert")

    assert (found.code, found.out) == (2, "")
    assert found.err.startswith(
        f"Session {session} is with {town.by('nora').address}, this key is of {town.by('bert').address}: "
    )


def test_settle__of_a_session_that_is_not_there__is_refused(operate):
    unknown = "0x" + "12" * 32
    found = operate("settle", unknown, "--dry-run")

    assert (found.code, found.err) == (
        2, f"The chain knows no session {unknown}: see `counterfoil sessions`.\n"
    )  # fmt: skip


def test_settle__by_number__goes_by_the_index_and_says_so_without_one(town, operate, session):
    without = operate("settle", "1", "--zero", "--dry-run")
    index.index_run(Settings(home=town.home, rpc_url=town.url))
    number = len(town.opened)
    found = operate("settle", number, "--zero", "--dry-run", "--json")

    assert without.code == 2
    assert without.err.endswith("Or name the session by its whole id, which needs no index.\n")
    assert found.json["steps"][0]["sentence"] == f"settle session {session} at 0 for 0 calls"
    assert operate("settle", session[:14], "--zero", "--dry-run", "--json").json == found.json
    assert "There is no session 999 as of block" in operate("settle", "999", "--dry-run").err
