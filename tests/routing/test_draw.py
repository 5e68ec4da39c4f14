"""Orders are drawn as far as they are read, and come out as if every draw walked the list."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.routing import draw as drawing
from counterfoil.routing.draw import Order, draw, sums_of
from tests.support.markets import seeds, unhurried

SEED = bytes(range(32))


def weights():
    return st.lists(st.one_of(st.just(0), st.integers(0, 3), st.integers(0, 10**18)), max_size=40)


def order_of(several, seed=SEED):
    return Order(tuple(range(1, len(several) + 1)), sums_of(several), seed)


def walked(several, seed):
    """The order by the text of the design: every draw walks those that are left."""
    left = dict(enumerate(several, 1))
    order = []
    while left:
        if not any(left.values()):
            left = dict.fromkeys(left, 1)
        number = int.from_bytes(drawing.keccak(seed + len(order).to_bytes(32, "big")), "big") % sum(left.values())
        for one, weight in left.items():
            if number < weight:
                order.append(one)
                del left[one]
                break
            number -= weight
    return tuple(order)


@pytest.fixture
def draws(monkeypatch):
    """Counts the draws that are made."""
    made = []
    real = drawing.keccak
    monkeypatch.setattr(drawing, "keccak", lambda data: made.append(data) or real(data))
    return made


@unhurried
@given(weights(), seeds())
def test_order__of_any_weights__is_what_a_walk_along_the_list_draws(several, seed):
    assert order_of(several, seed) == walked(several, seed)


@unhurried
@given(weights(), seeds(), st.integers(0, 45))
def test_draw__of_a_length__is_the_start_of_the_order(several, seed, length):
    ids = tuple(range(1, len(several) + 1))
    assert draw(ids, sums_of(several), seed, length) == walked(several, seed)[:length]


@unhurried
@given(st.lists(st.integers(0, 2**128), max_size=70))
def test_sums_of__any_weights__adds_up_every_pair_below(several):
    tree = sums_of(several)
    width = len(tree) // 2
    assert tree[width : width + len(several)] == several
    assert not any(tree[width + len(several) :])
    assert all(tree[node] == tree[2 * node] + tree[2 * node + 1] for node in range(1, width))


@pytest.mark.parametrize(
    ("read", "made"),
    [
        (len, 0),
        (lambda order: order[0], 1),
        (lambda order: order[:0], 0),
        (lambda order: order[3], 16),
        (lambda order: list(zip(range(4), order, strict=False)), 1 + 16),
        (lambda order: order[-1], 100),
        (list, 1 + 16 + 100),
    ],
)
def test_order__read_in_part__is_drawn_as_far_as_that(draws, read, made):
    read(order_of(range(1, 101)))
    assert len(draws) == made


def test_order__read_twice__is_drawn_once(draws):
    order = order_of(range(1, 101))
    assert order[:10] == order[:10]
    assert len(draws) == 16


def test_order__beside_a_tuple__is_its_equal_and_its_like():
    order = order_of([5, 0, 7, 0, 1])
    drawn = walked([5, 0, 7, 0, 1], SEED)
    assert order == drawn
    assert drawn == order
    assert order == order_of([5, 0, 7, 0, 1])
    assert order != drawn[::-1]
    assert order != list(drawn)
    assert repr(order) == repr(drawn)
    assert [order[i] for i in (-1, -5, 2)] == [drawn[i] for i in (-1, -5, 2)]
    assert order[3:0:-1] == drawn[3:0:-1]
    assert (order[1:][0], len(order), drawn[4] in order) == (drawn[1], 5, True)


@pytest.mark.parametrize("place", [5, -6])
def test_order__past_its_end__is_an_index_error(place):
    with pytest.raises(IndexError):
        order_of([5, 0, 7, 0, 1])[place]


def test_order__of_nobody__is_empty():
    assert order_of([]) == ()
    assert not order_of([])


def test_order__read_by_many_threads__is_the_same_to_all():
    order, drawn = order_of(range(1, 301)), walked(range(1, 301), SEED)
    start, found = threading.Barrier(8), []

    def read(place):
        start.wait()
        found.append((order[place], order[:] == drawn))

    threads = [threading.Thread(target=read, args=(place,)) for place in (0, 299, 15, 16, 1, 150, 17, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted((drawn[place], True) for place in (0, 299, 15, 16, 1, 150, 17, 2))
