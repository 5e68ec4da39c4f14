import pytest

from counterfoil import market
from counterfoil.reading import DamagedError, open_index, reading
from counterfoil.receipts import ReceiptError
from counterfoil.routing.lottery import LotteryError, category_id
from indexer.errors import StoreError, UnknownBlockError
from tests.support.chain import CATEGORY


def test_snapshot__as_of_any_block__is_what_the_lens_says_there(busy):
    world = busy.world
    head = world.chain.head().number
    with open_index(busy.settings()) as store:
        for block in range(head - 20, head + 1):
            found = market.snapshot(store, CATEGORY, block)
            size = world.registry.category_size(category_id(CATEGORY), block)

            assert found.candidates == world.lens.candidates(category_id(CATEGORY), size, block)
            as_of = found.as_of
            assert (as_of.chain_id, as_of.block, as_of.hash) == (31337, block, world.chain.block(block).hash)


def test_snapshot__of_nothing__is_empty(busy):
    with open_index(busy.settings()) as store:
        assert market.snapshot(store, "no:such").candidates == ()


def test_snapshot__as_of_a_block_that_is_not_indexed__says_so(busy):
    with open_index(busy.settings()) as store, pytest.raises(UnknownBlockError, match="run `counterfoil index run`"):
        market.snapshot(store, CATEGORY, 999_999)


def test_snapshot__with_an_impossible_row__names_the_candidate(busy, tmp_path):
    edited = busy.edited(tmp_path, f"UPDATE node_stake SET stake = '{2**130:078d}' WHERE node_id = 3")
    with (
        open_index(busy.settings(database=f"sqlite:///{edited}")) as store,
        pytest.raises(LotteryError, match="candidate 3: stake 1361129467683753853853498429727072845824 is not below"),
    ):
        market.snapshot(store, CATEGORY)


def test_open_index__with_a_table_missing__says_that_it_cannot_be_read(busy, tmp_path):
    edited = busy.edited(tmp_path)
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(edited)) as connection:
        connection.execute("DROP TABLE node_load")
    with (
        pytest.raises(StoreError, match=r"The index .*cannot be read"),
        open_index(busy.settings(database=f"sqlite:///{edited}")) as store,
    ):
        market.snapshot(store, CATEGORY)


@pytest.mark.parametrize("error", [ReceiptError("mine"), LotteryError("mine")])
def test_reading__with_an_error_of_a_decision__lets_it_pass(error):
    with pytest.raises(type(error), match="mine"), reading():
        raise error


def test_reading__with_a_malformed_value__calls_the_row_damaged():
    with pytest.raises(DamagedError, match="A row of the index is damaged: invalid literal"), reading():
        int("much")
