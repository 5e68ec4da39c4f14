"""The loop on a chain that moves, is replaced, restarted or pruned. Rows must be those of an honest node."""

import random
import threading

import pytest

from indexer import events as ev
from indexer import query
from indexer.errors import (
    BadAnswerError,
    BehindError,
    ForkError,
    HistoryPrunedError,
    NoHistoryError,
    RangeTooLargeError,
    ReorgTooDeepError,
    UnavailableError,
    WrongChainError,
)
from indexer.notices import Retried
from indexer.source import Source
from indexer.sync import SyncOptions, follow, run_once
from tests.indexer.conftest import QUICK, everything, steps_to
from tests.indexer.model import (
    CLIENT,
    Chain,
    Node,
)
from tests.indexer.traffic import SMALL, assert_same_as_clean, busy_chain, grow


@pytest.fixture
def chain():
    return busy_chain()


# --- reorgs


@pytest.mark.parametrize("depth", [1, 2, 7, 30])
@pytest.mark.parametrize("growth", [-1, 0, 3])
def test_run_once__after_a_reorg__has_the_rows_of_a_clean_index(writer, node, chain, tmp_path, depth, growth):
    run_once(writer, node, options=SMALL)
    chain.rewind(chain.head - depth)
    grow(chain, max(1, depth + growth), start=100)
    result = run_once(writer, node, options=SMALL)
    assert result.reorgs == 1
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__over_many_reorgs__has_the_rows_of_a_clean_index(writer, node, chain, tmp_path):
    chance = random.Random(11)
    for turn in range(25):
        chain.rewind(max(2, chain.head - chance.randrange(9)))
        grow(chain, chance.randrange(1, 8), start=1000 * (turn + 1))
        run_once(writer, node, options=SMALL)
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_the_head_replaced_at_its_height__follows(writer, node, chain, tmp_path):
    run_once(writer, node, options=QUICK)
    chain.rewind(chain.head - 1)
    chain.append(ev.PriceChanged(1, 4321))
    assert run_once(writer, node, options=QUICK).reorgs == 1
    assert query.service(writer.store, 1).value.price == 4321
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_lower_head_that_agrees__holds(writer, node, chain):
    run_once(writer, node, options=QUICK)
    before = everything(writer.store)
    kept = chain.blocks[:]
    chain.rewind(chain.head - 5)
    result = run_once(writer, node, options=QUICK)
    assert (result.held, result.block, result.head) == (True, kept[-1]["number"], chain.head)
    assert everything(writer.store) == before
    chain.blocks[:] = kept
    grow(chain, 2, start=200)
    result = run_once(writer, node, options=QUICK)
    assert (result.held, result.reorgs, result.block) == (False, 0, chain.head)


def test_run_once__with_a_reorg_whose_new_branch_cannot_be_read__keeps_the_old_rows(writer, node, chain):
    run_once(writer, node, options=QUICK)
    before = everything(writer.store)
    chain.rewind(chain.head - 3)
    grow(chain, 5, start=300)

    def fail(*_):
        raise UnavailableError("pruned")

    node.faults["eth_getLogs"] = fail
    with pytest.raises(UnavailableError):
        run_once(writer, node, options=QUICK)
    assert everything(writer.store) == before


def test_run_once__with_logs_of_the_old_fork_for_a_while__asks_again(writer, node, chain, tmp_path):
    run_once(writer, node, options=QUICK)
    stale = Node(Chain())
    stale.chain.blocks = chain.blocks[:]
    chain.rewind(chain.head - 3)
    grow(chain, 5, start=400)
    turns = iter([True, True])
    node.faults["eth_getLogs"] = lambda logs, params: stale.eth_getLogs(*params) if next(turns, False) else logs
    run_once(writer, node, options=QUICK)
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_reorg_below_a_final_block__names_the_remedy(writer, node, chain):
    node.finality = 10
    run_once(writer, node, options=QUICK)
    assert query.status(writer.store).value.finalized_block == chain.head - 10
    before = everything(writer.store)
    chain.rewind(chain.head - 11)
    grow(chain, 12, start=500)
    with pytest.raises(ReorgTooDeepError, match=r"had been final.*move the index away"):
        run_once(writer, node, options=QUICK)
    assert everything(writer.store) == before


def test_run_once__with_a_reorg_down_to_the_final_block__follows(writer, node, chain, tmp_path):
    node.finality = 10
    run_once(writer, node, options=QUICK)
    chain.rewind(chain.head - 10)
    grow(chain, 11, start=500)
    assert run_once(writer, node, options=QUICK).reorgs == 1
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__where_nothing_is_final__answers_not_finalized(writer, node, chain):
    def refuse(block, params):
        if params[0] == "finalized":
            raise BadAnswerError("unknown tag")
        return block

    node.faults["eth_getBlockByNumber"] = refuse
    run_once(writer, node, options=QUICK)
    assert query.status(writer.store).value.finalized_block is None
    assert not query.as_of(writer.store).finalized


def test_as_of__below_and_above_the_final_block__says_which(writer, node, chain):
    node.finality = 10
    run_once(writer, node, options=SMALL)
    assert query.as_of(writer.store, chain.head - 10).finalized
    assert not query.as_of(writer.store, chain.head - 9).finalized


def test_run_once__with_a_shorter_other_branch__follows_and_holds_where_it_only_shrank(writer, node, chain, tmp_path):
    run_once(writer, node, options=QUICK)
    kept = chain.blocks[:]
    chain.rewind(chain.head - 5)
    assert run_once(writer, node, options=QUICK).held
    assert writer.cursor().hash == kept[-1]["hash"]
    chain.append(ev.PriceChanged(1, 77))
    result = run_once(writer, node, options=QUICK)
    assert (result.held, result.reorgs, result.block) == (False, 1, len(kept) - 5)
    assert_same_as_clean(writer, chain, tmp_path)


# --- identity


@pytest.mark.parametrize(
    ("method", "lie", "message"),
    [
        ("eth_chainId", lambda *_: "0x1", "on chain 1, the deployment on chain 4242"),
        (
            "eth_getBlockByNumber",
            lambda block, params: block | {"hash": "0x" + "88" * 32} if params[0] == "0x0" else block,
            "genesis block differs.*make demo",
        ),
        (
            "eth_getBlockByNumber",
            lambda block, params: block | {"hash": "0x" + "88" * 32} if params[0] == "0x1" else block,
            "block 1, where NodeRegistry was deployed, differs.*ape run deploy",
        ),
        ("eth_getCode", lambda *_: "0x", "code of NodeRegistry differs"),
    ],
)
@pytest.mark.parametrize("started", [False, True])
def test_run_once__on_another_chain__names_the_remedy_and_writes_nothing(writer, node, method, lie, message, started):
    if started:
        run_once(writer, node, options=QUICK)
    before = everything(writer.store)
    node.faults[method] = lie
    with pytest.raises(WrongChainError, match=message):
        run_once(writer, node, options=QUICK)
    assert everything(writer.store) == before


def test_run_once__before_the_deployment_block__waits(writer, node, chain):
    chain.rewind(0)
    with pytest.raises(BehindError, match=r"does not have block 1, where NodeRegistry was deployed.*deploy again"):
        run_once(writer, node, options=QUICK)


def test_run_once__after_a_failure__checks_the_identity_again(writer, node, chain):
    run_once(writer, node, options=QUICK)
    answers = iter([UnavailableError("restarting")])

    def fail_once(block, params):
        if params[0] == "latest" and (error := next(answers, None)):
            node.faults["eth_chainId"] = lambda *_: "0x1"
            raise error
        return block

    node.faults["eth_getBlockByNumber"] = fail_once
    with pytest.raises(WrongChainError):
        run_once(writer, node, options=QUICK)


def test_run_once__on_a_chain_restarted_while_it_runs__names_the_remedy_and_keeps_the_rows(
    writer, node, chain, tmp_path
):
    """No answer failed in between, so that nothing but the other branch tells of the restart."""
    before = Chain()
    before.blocks = []

    def restart(step):
        if step.cursor.number >= 14 and not before.blocks:
            before.blocks = chain.blocks[:]
            chain.rewind(9)
            grow(chain, 20, start=800)
            node.faults["eth_getCode"] = lambda *_: "0x"

    with pytest.raises(WrongChainError, match="code of NodeRegistry differs"):
        run_once(writer, node, options=SMALL, observer=steps_to(restart))
    before.rewind(writer.cursor().number)  # what was read ahead counts, as it was read before the restart
    assert_same_as_clean(writer, before, tmp_path)


@pytest.mark.parametrize("growth", [-30, -5, 0, 30])
def test_run_once__on_a_restarted_chain_at_any_head__names_the_remedy_and_keeps_the_rows(writer, node, chain, growth):
    run_once(writer, node, options=QUICK)
    before, height = everything(writer.store), chain.head
    restarted = Chain()  # the same genesis and addresses, but other blocks
    grow(restarted, height + growth - 1)
    restarted.blocks[1] |= {"hash": "0x" + "31" * 32}
    restarted.blocks[2] |= {"parent": "0x" + "31" * 32}
    chain.blocks[:] = restarted.blocks
    with pytest.raises(WrongChainError, match=r"block 1, where NodeRegistry was deployed, differs.*make demo"):
        run_once(writer, node, options=QUICK)
    assert everything(writer.store) == before


@pytest.mark.parametrize("height", [0, 1])
def test_follow__on_a_chain_restarted_below_the_index__does_not_take_it_for_a_node_behind(writer, node, chain, height):
    """The identity was checked when the run began, and no answer failed: only the lower head is odd."""
    genesis = chain.blocks[0]

    def restart(step):
        if step.outcome == "current":
            chain.blocks[:] = [genesis, chain.blocks[1] | {"hash": "0x" + "31" * 32}][: height + 1]

    stop, told = threading.Event(), []

    def observe(notice):
        steps_to(restart)(notice)
        if isinstance(notice, Retried):
            told.append(str(notice.error))
            stop.set()

    before = chain.head
    if height:
        with pytest.raises(WrongChainError, match="block 1, where NodeRegistry was deployed, differs"):
            follow(writer, node, stop=stop, options=QUICK, observer=observe)
    else:
        follow(writer, node, stop=stop, options=QUICK, observer=observe)
        assert "a development chain that was restarted" in told[0]
    assert writer.cursor().number == before


def test_run_once__with_a_first_range_of_another_fork__does_not_begin_with_it(writer, node, chain):
    """The identity is right each time, and then another node behind the address answers."""
    beginning = []

    def swap(block, params):
        if params[0] == "latest":
            beginning.append(True)
        return block | {"hash": "0x" + "31" * 32} if params[0] == "0x1" and beginning else block

    node.faults["eth_getBlockByNumber"] = swap
    node.faults["eth_chainId"] = lambda answer, _: beginning.clear() or answer
    with pytest.raises(ForkError, match="Block 1 is not the one of the deployment file"):
        run_once(writer, node, options=QUICK)
    assert writer.cursor() is None


@pytest.mark.parametrize("growing", [False, True])
def test_run_once__with_null_for_a_block_far_below_the_head__is_pruned_history(writer, node, chain, growing):
    for _ in range(200):
        chain.append()

    def lack(block, params):
        if growing and params[0] == "0x9":
            chain.append()
        return None if params[0] == "0x9" else block

    node.faults["eth_getBlockByNumber"] = lack
    with pytest.raises(HistoryPrunedError, match=r"does not have block 9, far below its head.*whole history"):
        run_once(writer, node, options=SMALL)
    assert writer.cursor() is None or writer.cursor().number < 9


def test_run_once__with_pruned_history_below_the_index__does_not_need_it(writer, node, chain, tmp_path):
    run_once(writer, node, options=QUICK)
    kept = chain.head - 3

    def prune(answer, params):
        if int(params[0]["fromBlock"], 16) < kept:
            raise NoHistoryError("pruned history unavailable.")
        return answer

    node.faults["eth_getLogs"] = prune
    grow(chain, 9, start=400)
    run_once(writer, node, options=QUICK)
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_answers_that_take_too_long__asks_for_less(writer, node, chain, tmp_path):
    def slow(logs, params):
        if int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16) > 4:
            raise UnavailableError("no whole answer in 30 s")
        return logs

    node.faults["eth_getLogs"] = slow
    run_once(writer, node, options=QUICK)
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_usable_range_in_the_refusal__asks_for_that(writer, node, chain, tmp_path):
    def limit(logs, params):
        if int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16) >= 10:
            error = RangeTooLargeError("up to a 10 block range")
            error.blocks = 10
            raise error
        return logs

    node.faults["eth_getLogs"] = limit
    run_once(writer, node, options=QUICK)
    sizes = [
        int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16) + 1 for params in node.asked("eth_getLogs")
    ]
    assert sizes == [chain.head, 10, 10, 10, 10, chain.head - 40]
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_stale_header_at_the_cursor__does_not_mix_the_forks(writer, node, chain, tmp_path):
    run_once(writer, node, options=QUICK)
    stale = Node(Chain())
    stale.chain.blocks = chain.blocks[:]
    cursor = hex(chain.head)
    chain.rewind(chain.head - 2)
    grow(chain, 6, start=700)
    turns = iter([True])
    node.faults["eth_getBlockByNumber"] = lambda block, params: (
        stale.eth_getBlockByNumber(*params) if params[0] == cursor and next(turns, False) else block
    )
    result = run_once(writer, node, options=QUICK)
    assert result.reorgs == 1
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_final_block_of_another_fork__does_not_believe_it(writer, node, chain):
    node.finality = 10
    node.faults["eth_getBlockByNumber"] = lambda block, params: (
        block | {"hash": "0x" + "66" * 32} if params[0] == "finalized" else block
    )
    with pytest.raises(ForkError, match=r"final block .* is not ours"):
        run_once(writer, node, options=QUICK)
    assert writer.cursor() is None


def test_run_once__where_one_of_several_equal_logs_is_missing__needs_receipts_of_every_block(
    writer, node, chain, tmp_path
):
    """A block keeps a log of each kind, so its bloom tells nothing: only the full verification sees it."""
    number = chain.append(*[ev.Credited(CLIENT, amount) for amount in (1, 2, 4)])
    chain.append(ev.PriceChanged(1, 9))
    lost = {"blockNumber": hex(number), "logIndex": "0x1"}
    node.faults["eth_getLogs"] = lambda logs, _: [log for log in logs if not lost.items() <= log.items()]
    run_once(writer, node, options=SyncOptions(first_pause=0, verify="full"))
    assert_same_as_clean(writer, chain, tmp_path)


def test_source__asked_for_a_header_of_another_number__refuses(chain):
    node = Node(chain)
    node.faults["eth_getBlockByNumber"] = lambda block, _: block | {"number": "0x5"}
    with pytest.raises(BadAnswerError, match="gave block 5 for 6"):
        Source(node, chain.deployment()).header(6)
