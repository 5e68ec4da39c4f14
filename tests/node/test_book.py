import subprocess
import sys

import pytest

from counterfoil.node.book import VoucherBook
from counterfoil.node.vouchers import Refusal, RefusedError, Voucher

SESSION, OTHER = "0x" + "ab" * 32, "0x" + "cd" * 32


def voucher(amount, calls, session_id=SESSION):
    return Voucher(session_id, amount, calls, bytes([calls]) * 65)


@pytest.fixture
def book(tmp_path):
    return VoucherBook(tmp_path / "vouchers.sqlite")


def test_last__before_any_call__is_none(book):
    assert book.last(SESSION) is None


def test_keep__after_hold__is_the_last_one(book):
    book.hold(voucher(100, 1))
    assert book.last(SESSION) is None
    book.keep(voucher(100, 1))
    assert book.last(SESSION) == voucher(100, 1)


def test_keep__of_an_amount_beyond_63_bits__gives_it_back(book):
    book.hold(voucher(2**128 - 1, 1))
    book.keep(voucher(2**128 - 1, 1))
    assert book.last(SESSION).amount == 2**128 - 1


def test_hold__while_another_call_of_the_session_is_served__refuses(book):
    book.hold(voucher(100, 1))
    book.hold(voucher(100, 1, OTHER))
    with pytest.raises(RefusedError) as refused:
        book.hold(voucher(200, 2))
    assert refused.value.refusal is Refusal.BUSY


def test_drop__after_a_failed_call__keeps_the_last_valid_one(book):
    book.hold(voucher(100, 1))
    book.keep(voucher(100, 1))
    book.hold(voucher(200, 2))
    book.drop(SESSION)
    assert book.last(SESSION) == voucher(100, 1)
    book.hold(voucher(200, 2))


def test_hold__of_a_voucher_whose_call_was_served_in_between__refuses(book):
    book.hold(voucher(100, 1))
    book.keep(voucher(100, 1))
    with pytest.raises(RefusedError) as refused:
        book.hold(voucher(100, 1))
    assert refused.value.refusal is Refusal.WRONG_CALLS
    book.hold(voucher(200, 2))


def test_claim__while_a_call_is_served__refuses(book):
    book.hold(voucher(100, 1))
    with pytest.raises(RefusedError) as refused:
        book.claim(SESSION)
    assert refused.value.refusal is Refusal.BUSY


def test_claim__of_a_session__keeps_calls_out_until_it_is_freed(book):
    book.hold(voucher(100, 1))
    book.keep(voucher(100, 1))
    assert book.claim(SESSION) == voucher(100, 1)
    with pytest.raises(RefusedError):
        book.hold(voucher(200, 2))
    book.drop(SESSION)
    book.hold(voucher(200, 2))


def test_claim__of_a_session_without_a_call__is_at_zero(book):
    assert book.claim(SESSION) == Voucher(SESSION, 0, 0, b"")


def test_unsettled__of_the_book__leaves_out_what_was_settled(book):
    for session_id in (SESSION, OTHER):
        book.hold(voucher(100, 1, session_id))
        book.keep(voucher(100, 1, session_id))
    book.claim(SESSION)
    book.settled(SESSION)
    assert [one.session_id for one in book.unsettled()] == [OTHER]


def test_book__after_the_process_died_while_serving__keeps_the_earned_and_drops_the_unearned(tmp_path):
    path = tmp_path / "vouchers.sqlite"
    program = f"""
import os, pathlib
from counterfoil.node.book import VoucherBook
from counterfoil.node.vouchers import Voucher
book = VoucherBook(pathlib.Path({str(path)!r}))
book.hold(Voucher({SESSION!r}, 100, 1, bytes([1]) * 65))
book.keep(Voucher({SESSION!r}, 100, 1, bytes([1]) * 65))
book.hold(Voucher({SESSION!r}, 200, 2, bytes([2]) * 65))
os.kill(os.getpid(), 9)
"""
    died = subprocess.run([sys.executable, "-c", program], check=False)
    assert died.returncode == -9
    book = VoucherBook(path)
    assert book.last(SESSION) == voucher(100, 1)
    book.hold(voucher(200, 2))
