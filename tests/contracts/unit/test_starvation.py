"""
A caller who gives too little gas (of which a call passes on 63/64) gets all or nothing: no half of a change, and no
answer of a wallet is made out of its silence.
"""

import ape
import pytest

from tests.contracts.world import CHALLENGE_PERIOD, Record

SHARES = range(10, 100, 10)


def starve(world, method, arguments, sender, state, least=30_000):
    """
    Call with every share of the gas that is needed: the state changes whole or not at all. With less than `least`,
    which covers the data, the transaction would not be taken at all.
    """
    snapshot = world.chain.snapshot()
    untouched = state()
    needed = method(*arguments, sender=sender).gas_used
    done = state()
    assert done != untouched
    for share in SHARES:
        world.chain.restore(snapshot)
        snapshot = world.chain.snapshot()
        with pytest.raises(ape.exceptions.TransactionError):
            method(*arguments, sender=sender, gas_limit=max(needed * share // 100, least))
        assert state() == untouched, share


@pytest.mark.rule("MOD-12")
def test_withdraw__starved__pays_whole_or_not_at_all(world):
    world.settled(300, 3)
    starve(
        world, world.manager.withdraw, [world.key], world.operator,
        lambda: (world.manager.credit_of(world.operator), world.token.balanceOf(world.key), world.held()),
    )  # fmt: skip


@pytest.mark.rule("MOD-12")
def test_open__starved__opens_whole_or_not_at_all(world):
    arguments = [1, 1_000, 100, 7_200, world.key, world.choice()]
    starve(
        world, world.manager.open, arguments, world.client,
        lambda: (world.manager.draws(world.client), world.manager.active_sessions(1), world.held()),
    )  # fmt: skip


@pytest.mark.rule("MOD-12")
def test_finish_close__starved__ends_whole_or_not_at_all(world, session_id):
    world.manager.request_close(session_id, sender=world.client)
    world.at(world.now() + CHALLENGE_PERIOD)
    world.chain.mine()
    starve(
        world, world.manager.finish_close, [session_id], world.other,
        lambda: (world.manager.active_sessions(1), world.manager.credit_of(world.client)),
    )  # fmt: skip


@pytest.mark.rule("MOD-12", "RL-15")
def test_rate_by_signature__starved_in_the_wallet__rates_whole_or_not_at_all(world):
    wallet, session_id = world.wallet()
    world.settle(session_id, signer=world.key)
    wallet.answer(1, b"known", sender=world.other)
    starve(
        world, world.reputation.rate_by_signature, [session_id, 80, b"known"], world.other,
        lambda: (list(world.reputation.score_of(session_id)), list(world.reputation.ratings(1))),
    )  # fmt: skip


@pytest.mark.rule("MOD-12")
def test_attest_many__starved__records_all_or_none(world):
    session_id = world.settled(300, 3)
    records = [Record(session_id, tool=tool) for tool in ("a", "b")]
    signed = [world.signed_record(record) for record in records]
    starve(
        world, world.experience.attest_many, [records, signed], world.other,
        lambda: list(world.experience.records_of(session_id)), least=90_000,
    )  # fmt: skip


@pytest.mark.rule("MOD-5", "RL-15")
def test_rate_by_signature__by_a_wallet_that_eats_all_gas__reverts_with_the_ledgers_reason(world):
    wallet, session_id = world.wallet()
    world.settle(session_id, signer=world.key)
    wallet.answer(8, b"", sender=world.other)
    for gas_limit in (300_000, 3_000_000, 30_000_000):
        with ape.reverts("reputation: bad signature"):
            world.reputation.rate_by_signature(session_id, 80, b"any", sender=world.other, gas_limit=gas_limit)
