"""A node's services on a real chain: listed, priced, paused and resumed."""

import pytest

from tests.cli.test_node import words
from tests.support.chain import MIN_STAKE


@pytest.fixture(scope="module")
def service(town):
    """Anna's service in a category that has two others, at 100 and 200; gives its id."""
    town.node("one", MIN_STAKE, 100, "data:guarded")
    town.node("two", MIN_STAKE, 200, "data:guarded")
    return town.node("anna", MIN_STAKE, 120, "data:guarded")


def test_list_service__in_a_category__lists_it_and_names_the_next_step(town, operate, service):
    node_id = town.registry.service(service).node_id
    command = ["list-service", node_id, "--category", "mcp:web-search", "--price", 900, "--metadata-uri", "ipfs://m"]
    found = operate(*command, "--yes", by="anna")
    listed = town.registry.service_count()
    state = town.registry.service(listed)

    assert found.code == 0
    assert (state.node_id, state.price, state.active, state.metadata_uri) == (node_id, 900, True, "ipfs://m")
    assert words(found.out).endswith(
        f"Service {listed} is listed. No other service of the category can be routed to, so the guard keeps any price. "
        f"Next: counterfoil service {listed}"
    )
    again = operate(*command, "--dry-run", by="anna")
    assert again.code == 2
    assert "registry: category already listed. A node has one service in a category for ever" in again.err


def test_list_service__in_a_dry_run__says_how_the_price_stands(town, operate, service):
    node_id = town.registry.service(town.node("carl", MIN_STAKE, 1, "a:b")).node_id
    command = ["list-service", node_id, "--category", "data:guarded", "--price"]
    prices = 100 + 200 + town.registry.service(service).price
    highest = 120 * prices // 280

    kept = operate(*command, highest, "--dry-run", "--json").json
    dropped = operate(*command, highest + 1, "--dry-run", "--json").json
    assert kept["notes"] == [f"The guard keeps {highest}: prices up to {highest} are at most 120% of the average."]
    (note,) = dropped["notes"]
    assert note == (
        f"The guard drops {highest + 1}, which is over 120% of the category's average: only clients that pin the "
        f"service come. Prices up to {highest} are kept."
    )


def test_list_service__as_the_first_of_its_category__may_ask_any_price(town, operate, service):
    node_id = town.registry.service(service).node_id
    found = operate("list-service", node_id, "--category", "new:one", "--price", 10**20, "--dry-run", "--json").json

    assert found["notes"] == ["No other service of the category can be routed to, so the guard keeps any price."]


@pytest.mark.parametrize(
    ("category", "price", "reason"), [("Data", 1, "malformed category"), ("a:b:c", 2**96, "price too large")]
)
def test_list_service__that_the_chain_does_not_take__is_refused(town, operate, service, category, price, reason):
    node_id = town.registry.service(service).node_id
    found = operate("list-service", node_id, "--category", category, "--price", price, "--dry-run")

    assert (found.code, f": registry: {reason}. " in found.err) == (2, True)


def test_set_price__of_a_service__changes_it_and_says_what_the_guard_does(town, operate, service):
    highest = 120 * 300 // 180
    found = operate("set-price", service, 201, "--yes", by="anna")

    assert highest == 200
    assert town.registry.service(service).price == 201
    assert words(found.out).endswith(
        f"Service {service} costs 201 a call in sessions opened from now on. The guard drops 201, which is over 120% "
        "of the category's average: only clients that pin the service come. Prices up to 200 are kept. "
        f"Next: counterfoil node status {town.registry.service(service).node_id}"
    )
    kept = operate("set-price", service, 200, "--yes", "--json", by="anna").json
    assert (kept["service_id"], kept["price"], len(kept["transactions"])) == (service, "200", 1)
    again = operate("set-price", service, 200, "--yes", "--json", by="anna").json
    assert again == {"service_id": service, "price": "200", "transactions": []}


def test_pause_and_resume__of_a_service__switch_it(town, operate, service):
    paused = operate("pause-service", service, "--yes", by="anna")

    assert not town.registry.service(service).active
    assert words(paused.out).endswith(
        f"Service {service} takes no new sessions; open ones go on. Next: counterfoil node resume-service {service}"
    )
    again = operate("pause-service", service, by="anna")
    assert (
        again.out
        == f"Service {service} is paused already: nothing was sent.\nNext: counterfoil node resume-service {service}\n"
    )
    resumed = operate("resume-service", service, "--yes", "--json", by="anna").json
    assert (resumed["service_id"], resumed["active"], len(resumed["transactions"])) == (service, True, 1)
    assert town.registry.service(service).active
    assert operate("resume-service", service, "--json").json == {
        "service_id": service, "active": True, "transactions": []
    }  # fmt: skip
