import pytest

from counterfoil.routing import reasons


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0"),
        (10**18, "1"),
        (288672000000000000, "0.288672"),
        (1999999999999999999, "1.999999"),
        (1, "0"),
        (5 * 10**17, "0.5"),
    ],
)
def test_wad__with_any_digits__is_cut_after_six(number, words):
    assert reasons.wad(number) == words


@pytest.mark.parametrize(
    ("ratio", "words"),
    [((350, 3), "116.66"), ((300, 3), "100"), ((1, 10), "0.10"), ((0, 4), "0"), ((1, 1000), "0")],
)
def test_hundredths__with_a_ratio__is_cut_not_rounded(ratio, words):
    assert reasons.hundredths(*ratio) == words


def test_relaxed__with_one_or_more__counts_in_words():
    assert reasons.relaxed(5, 1) == "the cap 5 is below the price of all 1 candidate, so nobody was dropped"
    assert reasons.relaxed(5, 4) == "the cap 5 is below the price of all 4 candidates, so nobody was dropped"
