import subprocess
import sys

import pytest

from counterfoil.node import book as books
from counterfoil.node.book import Answer, BookError, Known, Stage, VoucherBook
from counterfoil.node.vouchers import Refusal, RefusedError, Voucher
from indexer.errors import LockedError

SESSION, OTHER = "0x" + "ab" * 32, "0x" + "cd" * 32
ANSWER = Answer(200, {"content-type": "text/plain"}, b"\x00answer")


def known(session_id=SESSION):
    return Known(session_id, "0x" + "1" * 40, 100, 7, 1_700_000_000)


def voucher(amount, calls, session_id=SESSION):
    return Voucher(session_id, amount, calls, bytes([calls]) * 65)


def serve(book, amount, calls, session_id=SESSION, request="0x01"):
    book.hold(known(session_id), voucher(amount, calls, session_id), request)
    book.keep(session_id, ANSWER)


def last(book, session_id=SESSION):
    record = book.record(session_id)
    return record and record.last


@pytest.fixture
def book(tmp_path):
    made = VoucherBook(tmp_path / "vouchers.sqlite")
    yield made
    made.close()


def test_record__before_any_call__is_none(book):
    assert book.record(SESSION) is None


def test_keep__after_hold__is_the_last_voucher_with_its_request_and_answer(book):
    book.hold(known(), voucher(100, 1), "0x01")
    assert last(book) is None
    assert book.answer(SESSION) is None
    book.keep(SESSION, ANSWER)
    record = book.record(SESSION)
    assert (record.last, record.request, record.known, record.stage) == (voucher(100, 1), "0x01", known(), Stage.OPEN)
    assert book.answer(SESSION) == ANSWER


def test_keep__of_the_next_call__replaces_the_answer(book):
    serve(book, 100, 1)
    book.hold(known(), voucher(200, 2), "0x02")
    book.keep(SESSION, Answer(201, {}, b""))
    assert (last(book), book.answer(SESSION)) == (voucher(200, 2), Answer(201, {}, b""))


def test_keep__of_an_amount_beyond_63_bits__gives_it_back(book):
    serve(book, 2**128 - 1, 1)
    assert last(book).amount == 2**128 - 1


def test_hold__while_another_call_of_the_session_is_served__refuses(book):
    book.hold(known(), voucher(100, 1))
    book.hold(known(OTHER), voucher(100, 1, OTHER))
    with pytest.raises(RefusedError) as refused:
        book.hold(known(), voucher(200, 2))
    assert refused.value.refusal is Refusal.BUSY


def test_drop__after_a_failed_call__keeps_the_last_valid_one(book):
    serve(book, 100, 1)
    book.hold(known(), voucher(200, 2))
    book.drop(SESSION)
    assert (last(book), book.answer(SESSION)) == (voucher(100, 1), ANSWER)
    book.hold(known(), voucher(200, 2))


def test_hold__of_a_voucher_whose_call_was_served_in_between__refuses(book):
    serve(book, 100, 1)
    with pytest.raises(RefusedError) as refused:
        book.hold(known(), voucher(100, 1))
    assert refused.value.refusal is Refusal.WRONG_CALLS
    book.hold(known(), voucher(200, 2))


def test_claim__while_a_call_is_served__refuses_and_leaves_the_session_open(book):
    book.hold(known(), voucher(100, 1))
    with pytest.raises(RefusedError) as refused:
        book.claim(known())
    assert refused.value.refusal is Refusal.BUSY
    book.keep(SESSION, ANSWER)
    book.hold(known(), voucher(200, 2))


def test_claim__of_a_session__keeps_calls_out_for_good(book):
    serve(book, 100, 1)
    assert book.claim(known()).payable == voucher(100, 1)
    with pytest.raises(RefusedError) as refused:
        book.hold(known(), voucher(200, 2))
    assert refused.value.refusal is Refusal.NOT_OPEN
    assert book.record(SESSION).stage is Stage.SETTLING


def test_claim__of_a_session_without_a_call__is_at_zero(book):
    assert book.claim(known()).payable == Voucher(SESSION, 0, 0, b"")


def test_watched__of_the_book__leaves_out_only_what_is_finally_settled(book):
    for session_id in (SESSION, OTHER):
        serve(book, 100, 1, session_id)
        book.claim(known(session_id))
        book.settled(session_id, 9, "0x09")
    book.finish(SESSION)
    assert [(one.known.session_id, one.stage, one.settled_in) for one in book.watched()] == [
        (OTHER, Stage.SETTLED, (9, "0x09"))
    ]
    book.undone(OTHER)
    assert [one.stage for one in book.watched()] == [Stage.SETTLING]


def test_note__of_a_session_that_is_there__changes_nothing(book):
    serve(book, 100, 1)
    book.note(Known(SESSION, "0x" + "9" * 40, 5, 8, 9))
    assert (book.record(SESSION).known, last(book)) == (known(), voucher(100, 1))


def test_forget__of_a_session__takes_its_answer_too(book):
    serve(book, 100, 1)
    book.forget(SESSION)
    assert (book.record(SESSION), book.answer(SESSION), book.watched()) == (None, None, [])


def finished(book, number):
    session_id = f"0x{number:064x}"
    serve(book, 100, 1, session_id)
    book.settled(session_id, number, "0x09")
    book.finish(session_id)
    return session_id


@pytest.mark.parametrize(("count", "size"), [(2, 10**9), (10**9, 2 * len(ANSWER.body))])
def test_prune__of_more_final_sessions_than_stay__takes_the_oldest(book, monkeypatch, count, size):
    monkeypatch.setattr(books, "MAX_FINAL", count)
    monkeypatch.setattr(books, "MAX_FINAL_BYTES", size)
    serve(book, 100, 1)
    ids = [finished(book, number) for number in (1, 2, 3, 4)]
    book.prune()
    assert [session_id for session_id in ids if book.record(session_id)] == ids[2:]
    assert [session_id for session_id in ids if book.answer(session_id)] == ids[2:]
    assert last(book) == voucher(100, 1)


def test_scanned__at_first_is_unknown_and_then_what_was_set(book):
    assert book.scanned() is None
    book.set_scanned(5)
    book.set_scanned(9)
    assert book.scanned() == 9


def test_book__that_another_process_holds__is_refused_with_a_sentence(book, tmp_path):
    with pytest.raises(LockedError, match=r"Another process serves this node with the book .*: stop it first"):
        VoucherBook(tmp_path / "vouchers.sqlite")


def test_book__of_another_chain__is_refused(tmp_path):
    VoucherBook(tmp_path / "one.sqlite", "node 1 of chain 5").close()
    with pytest.raises(BookError, match=r"is of another chain or node .node 1 of chain 5.: move it away"):
        VoucherBook(tmp_path / "one.sqlite", "node 1 of chain 6")
    VoucherBook(tmp_path / "one.sqlite", "node 1 of chain 5").close()


def test_book__that_is_no_database__is_refused_with_its_path(tmp_path):
    path = tmp_path / "one.sqlite"
    path.write_bytes(b"no database" * 100)
    with pytest.raises(BookError, match=r"one\.sqlite cannot be used .file is not a database."):
        VoucherBook(path)


def test_book__whose_disk_fails__raises_and_lets_the_session_go(book):
    book.hold(known(), voucher(100, 1))
    book._connection.execute("pragma query_only = 1")
    with pytest.raises(BookError):
        book.keep(SESSION, ANSWER)
    with pytest.raises(BookError):
        book.drop(SESSION)
    book._connection.execute("pragma query_only = 0")
    assert last(book) is None
    book.hold(known(), voucher(100, 1))


def test_book__after_the_process_died_while_serving__keeps_the_earned_and_drops_the_unearned(tmp_path):
    path = tmp_path / "vouchers.sqlite"
    program = f"""
import os, pathlib
from counterfoil.node.book import VoucherBook
from tests.node.test_book import known, serve, voucher
book = VoucherBook(pathlib.Path({str(path)!r}))
serve(book, 100, 1)
book.hold(known(), voucher(200, 2))
os.kill(os.getpid(), 9)
"""
    died = subprocess.run([sys.executable, "-c", program], check=False)
    assert died.returncode == -9
    book = VoucherBook(path)
    assert (last(book), book.answer(SESSION)) == (voucher(100, 1), ANSWER)
    book.hold(known(), voucher(200, 2))
    book.close()
