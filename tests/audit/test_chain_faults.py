"""Chains that cannot answer, or that changed."""

import json

import pytest

from counterfoil.audit.model import Outcome, Part
from counterfoil.audit.opening import open_auditor
from counterfoil.audit.range import audit_range
from counterfoil.chain import contracts
from counterfoil.chain.connection import Block
from indexer import service
from indexer.settings import Settings
from tests.support.chain import CATEGORY, MIN_STAKE, anvil, deploy, unused_url


@pytest.fixture
def small(tmp_path):
    """A market of three, one session, and its index."""
    with anvil("--prune-history", "30") as url:
        world = deploy(url, tmp_path)
        for i in range(3):
            world.node(f"operator{i}", MIN_STAKE * (i + 1), 100)
        world.route("alice")
        service.index_run(Settings(home=tmp_path, rpc_url=url))
        yield world
        world.chain.close()


def settings(world):
    return Settings(home=world.home, rpc_url=world.url)


def test_session__whose_snapshot_is_pruned__cannot_be_checked_by_state_and_is_by_index(small):
    small.rpc("anvil_mine", "0x40")
    with open_auditor(settings(small)) as auditor:
        found = auditor.session("1")

    assert found.outcome_of(Part.STATE) is Outcome.UNKNOWN
    assert found.outcome_of(Part.INDEX) is Outcome.OK
    unread = [check.sentence for check in found.checks if check.outcome is Outcome.UNKNOWN]
    assert "the RPC no longer holds that state" in unread[0]
    assert "use an archive node with --rpc" in unread[0]


def test_session__replaced_by_a_reorg__is_known_to_the_stale_index_alone(small):
    small.rpc("anvil_reorg", 6, [])
    with open_auditor(settings(small)) as auditor:
        found = auditor.session(small.opened[0])
    by_state = [check for check in found.checks if check.part is Part.STATE]

    assert [check.sentence for check in by_state] == [
        "it is not on chain: bring the index up to date with `counterfoil index run`"
    ]
    assert found.outcome is Outcome.UNKNOWN


def test_session__whose_snapshot_is_replaced_while_it_is_read__is_not_believed(small, monkeypatch):
    with open_auditor(settings(small), "state") as auditor:
        chain, asked = auditor.state.chain, []

        def replaced(number):
            asked.append(number)
            return Block(number, "0x" + f"{len(asked):064x}", 0)

        monkeypatch.setattr(chain, "block", replaced)
        found = auditor.session(small.opened[0])

    unread = [check.sentence for check in found.checks if check.outcome is Outcome.UNKNOWN]
    assert unread[0].endswith("was replaced while it was read: audit again.")


def test_session__on_a_chain_that_dies_meanwhile__is_still_replayed_by_index(small):
    with open_auditor(settings(small)) as auditor:
        auditor.state.chain.provider.endpoint = unused_url()
        found = auditor.session("1")

    assert found.outcome_of(Part.STATE) is Outcome.UNKNOWN
    assert found.outcome_of(Part.INDEX) is Outcome.OK
    assert "does not answer" in found.checks[0].sentence


def test_session__unknown_to_a_chain_that_dies_meanwhile__says_why_it_is_unknown(small):
    with open_auditor(settings(small), "state") as auditor:
        auditor.state.chain.provider.endpoint = unused_url()
        found = auditor.session("0x" + "12" * 32)

    assert (found.outcome, found.facts) == (Outcome.UNKNOWN, None)
    assert "does not answer" in found.checks[0].sentence


def test_session__of_a_market_of_many_pages__reads_them_all(small, monkeypatch):
    monkeypatch.setattr(contracts, "_PAGE", 2)
    with open_auditor(settings(small)) as auditor:
        found = auditor.session("1")

    assert found.outcome is Outcome.OK
    assert len(found.ranking.candidates) == 3


def test_session__of_a_category_past_the_lens__is_replayed_without_it(small, monkeypatch):
    monkeypatch.setattr("counterfoil.audit.state.LENS_LIMIT", 2)
    with open_auditor(settings(small)) as auditor:
        found = auditor.session("1")

    assert found.outcome is Outcome.OK
    assert [check.sentence for check in found.checks if check.name == "lens"] == [
        "not asked: the category has 3 listings, the lens ranks at most 1024"
    ]


def test_session__of_an_rpc_that_refuses_long_ranges__is_found_in_steps(small, monkeypatch):
    monkeypatch.setattr("counterfoil.audit.state._STEP", 4)
    with open_auditor(settings(small), "state") as auditor:
        post, refused = auditor.state.chain.provider._post, []

        def refuse_long_ranges(content):
            request = json.loads(content)
            if request["method"] == "eth_getLogs":
                wanted = request["params"][0]
                if int(wanted["toBlock"], 16) - int(wanted["fromBlock"], 16) >= 4:
                    refused.append(wanted)
                    return b'{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"block range too large"}}'
            return post(content)

        monkeypatch.setattr(auditor.state.chain.provider, "_post", refuse_long_ranges)
        found = auditor.session(small.opened[0])
        many = audit_range(auditor, 0, 10_000)

    assert found.outcome is Outcome.OK
    assert len(many.audits) == len(refused) == 1


def test_session__whose_node_left_since__is_replayed_as_of_its_snapshot(small):
    operator = small.by("operator1")
    operator.send(small.registry.request_unstake(2, MIN_STAKE * 2))
    operator.send(small.registry.set_price(2, 7))
    service.index_run(settings(small))
    with open_auditor(settings(small)) as auditor:
        assert auditor.session("1").outcome is Outcome.OK
        assert small.decide("alice", CATEGORY).ranking.kept == (1, 3)
