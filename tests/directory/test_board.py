"""The board beside the pure ranking: a page is what ranking everything would give there."""

from dataclasses import replace
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.directory import Board, Experience
from counterfoil.routing.experience import Listing, best, by_need, by_task
from indexer.views import ServiceView
from tests.routing.test_experience import NEEDS, TASKS, record, records

SERVICES = (1, 2, 3, 4, 5, 6)


def view(service_id, **changes):
    given_ = {
        "service_id": service_id, "node_id": 1, "category_id": "0xaa", "category": "data:crypto", "price": 10,
        "metadata_uri": "", "active": True, "routable": True, "operator": "0x0b", "endpoint": "http://n", "stake": 100,
        "max_concurrent": 4, "active_sessions": 1, "rating_sum": 0, "rating_count": 0,
    }  # fmt: skip
    return ServiceView(**given_ | changes)


@st.composite
def views(draw):
    """Listings at few prices and ratings, so that many are alike; some are not routable."""
    made = []
    for service_id in draw(st.permutations(SERVICES)):
        rated = draw(st.sampled_from([(0, 0), (80, 1), (160, 2), (99, 1)]))
        made.append(
            view(
                service_id, price=draw(st.sampled_from([5, 10])), routable=draw(st.booleans()), rating_sum=rated[0],
                rating_count=rated[1], category_id=draw(st.sampled_from(["0xaa", "0xbb"])),
            )
        )  # fmt: skip
    return made


def board_of(listed, found):
    board = Board()
    for one in listed:
        board.put(one)
    board.add(found)
    return board


def slow_ranking(listed, found, task, need):
    needs, tasks = by_need(found), by_task(found)

    def of(groups, service_id):
        return {(tool, label): summary for (service, tool, label), summary in groups.items() if service == service_id}

    listings = [
        Listing(
            one.service_id, one.price,
            Fraction(one.rating_sum, 100 * one.rating_count) if one.rating_count else Fraction(1, 2),
            of(needs, one.service_id), of(tasks, one.service_id),
        )
        for one in listed
    ]  # fmt: skip
    return best(listings, task, need)


@given(views(), records(services=SERVICES, most=20), st.sampled_from(["", *TASKS, "bitcoin", "nothing like it"]),
       st.sampled_from(["", *NEEDS, "llm:none"]), st.integers(0, 7), st.integers(1, 7), st.booleans())  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_best__of_any_board__is_that_page_of_ranking_everything(listed, found, task, need, after, limit, routable):
    board = board_of(listed, found)
    wanted = slow_ranking([one for one in listed if one.routable or not routable], found, task, need)
    ranked = board.best(task, need, limit, after, routable=routable)
    assert [one.match for one in ranked] == wanted[after : after + limit]
    assert [one.view.service_id for one in ranked] == [one.match.listing.service_id for one in ranked]


@given(records(services=SERVICES, most=20), st.randoms(use_true_random=False))
def test_add__in_any_order__gives_the_same_board(found, random):
    shuffled = found[:]
    random.shuffle(shuffled)
    one, other = board_of([], found), board_of([], shuffled)
    assert [one.experience(number) for number in SERVICES] == [other.experience(number) for number in SERVICES]


@given(views(), st.sampled_from([None, "0xaa", "0xbb", "0xcc"]), st.booleans(), st.integers(1, 4))
def test_page__one_after_the_other__gives_every_listing_once_by_id(listed, category, routable, limit):
    board, after, found = board_of(listed, []), 0, []
    while after is not None:
        page, after = board.page(category, limit, after, routable=routable)
        found += page
    fits = [one for one in listed if category in {None, one.category_id} and (one.routable or not routable)]
    assert found == sorted(fits, key=lambda one: one.service_id)


def test_put__of_a_listing_that_changed__replaces_it_in_its_place():
    board = board_of([view(1), view(2)], [])
    board.put(replace(view(1), price=99))
    assert ([one.price for one in board.page(None, 9)[0]], board.view(1).price) == ([99, 10], 99)


def test_best__of_a_listing_that_is_not_there_any_more__leaves_its_experience_out():
    board = board_of([view(1)], [record(1, service_id=1), record(2, service_id=2)])
    assert [one.view.service_id for one in board.best("bitcoin price", "", 9)] == [1]


def test_detach__before_a_record_is_added__leaves_what_was_read_as_it_was():
    board = board_of([view(1)], [record(1, note="first")])
    before = board.experience(1)
    kept = before.copy()
    board.detach([1, 2])
    board.add([record(2, latency_ms=9, note="second")])
    assert before == kept != board.experience(1)
    assert board.experience(1).needs["quote", "data:crypto"].runs == 2
    assert board.experience(2) == Experience()
