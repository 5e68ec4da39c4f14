"""Two indexes compared: which block differs first, and whose rows are wrong."""

import pytest
from sqlalchemy import text

from indexer import events as ev
from indexer.digest import NO_DIGEST
from indexer.errors import StoreError, UnknownBlockError
from indexer.store.compare import examine
from indexer.store.writer import open_writer
from tests.indexer.model import (
    ADDRESSES,
    CLIENT,
    attested,
    disputed,
    encoded,
    listed,
    load,
    opened,
    other_chain,
    rated,
    registered,
    settled,
)


def spanned(ours, theirs):
    found = examine(ours, theirs)
    return found.first_block, found.last_block, found.differs_at


def test_examine__of_indexes_that_differ__names_the_first_block(writer, chain, tmp_path):
    chain.append(*registered(1), listed(1, 1))
    for price in range(20, 30):
        chain.append(ev.PriceChanged(1, price))
    load(writer, chain)
    with open_writer(tmp_path / "other.sqlite", chain.deployment()) as other:
        load(other, chain, last=5)
        chain.rewind(5)
        for price in range(40, 60):
            chain.append(ev.PriceChanged(1, price))
        load(other, chain, first=6)
        assert spanned(writer.store, other.store) == (1, 12, 6)


def test_examine__with_an_empty_index__says_so(writer, chain, tmp_path):
    load(writer, chain)
    with (
        open_writer(tmp_path / "other.sqlite", chain.deployment()) as other,
        pytest.raises(UnknownBlockError, match=r"other\.sqlite is empty"),
    ):
        examine(writer.store, other.store)


def test_examine__of_different_deployments__is_refused(writer, tmp_path):
    with (
        open_writer(tmp_path / "other.sqlite", other_chain().deployment()) as other,
        pytest.raises(StoreError, match="different deployments"),
    ):
        examine(writer.store, other.store)


@pytest.fixture
def pair(postgresql, chain, tmp_path):
    """Two indexes of one history, in which every table has rows: ours in PostgreSQL, theirs in SQLite."""
    with postgresql.index() as url, open_writer(url, chain.deployment()) as writer:
        yield from filled_pair(writer, chain, tmp_path)


def filled_pair(writer, chain, tmp_path):
    chain.append(*registered(1), *registered(2), listed(1, 1), listed(2, 2))
    topics, _ = encoded(ev.PriceChanged(1, 5))
    chain.append(opened(1), opened(2, node_id=2), logs=[(ADDRESSES["NodeRegistry"], topics, "0x01")])
    chain.append(settled(1), rated(1), attested(1), ev.CapabilityChanged(1, "a", enabled=True))
    chain.append(ev.StakeSlashed(1, 10, 5, CLIENT), disputed(1), ev.Credited(CLIENT, 5), ev.CourtCredited(CLIENT, 5))
    chain.append(ev.StakeChanged(1, 9000, 0, 0), ev.PriceChanged(1, 30))
    chain.append(ev.StakeChanged(1, 9500, 0, 0))
    load(writer, chain)
    with open_writer(tmp_path / "other.sqlite", chain.deployment()) as other:
        for first in (1, 4):
            load(other, chain, first, min(chain.head, first + 2) if first == 1 else chain.head)
        yield writer, other


ITSELF = "do not match its own digest: run `counterfoil index rebuild` on it"
EDITS = [
    ("UPDATE node_stake SET stake = stake + 1 WHERE valid_from = 6", 6, ITSELF),
    ("UPDATE node_stake SET stake = stake + 1 WHERE node_id = 1 AND valid_to IS NULL", 7, ITSELF),
    ("UPDATE node SET endpoint = 'http://mine'", 2, ITSELF),
    ("DELETE FROM node_stake WHERE valid_from = 6", 6, ITSELF),
    ("DELETE FROM session WHERE valid_from = 4", 4, ITSELF),
    ("DELETE FROM session", 3, ITSELF),
    ("DELETE FROM rating", 4, ITSELF),
    ("DELETE FROM experience", 4, ITSELF),
    ("DELETE FROM parameter WHERE name = 'min_stake'", 1, ITSELF),
    ("UPDATE parameter SET value = '1' WHERE name = 'min_stake'", 1, ITSELF),
    ("UPDATE rating SET log_index = log_index + 10", 4, ITSELF),
    ("UPDATE rating SET valid_from = valid_from + 1", 4, ITSELF),
    ("DELETE FROM quarantine", 3, ITSELF),
    ("INSERT INTO arbiter (valid_from, log_index, arbiter) VALUES (5, 99, 'me')", 5, ITSELF),
    ("INSERT INTO arbiter (valid_from, log_index, arbiter) VALUES (0, 0, 'me')", 1, ITSELF),
    ("INSERT INTO credit (account, valid_from, amount) VALUES ('me', 6, '7')", 6, ITSELF),
    (f"UPDATE block SET digest = '{NO_DIGEST}' WHERE number >= 5", 5, ITSELF),
    ("UPDATE block SET digest = 'none' WHERE number = 5", 5, ITSELF),
    ("UPDATE block SET hash = parent_hash WHERE number = 5", 5, ITSELF),
    ("UPDATE session SET valid_to = 6 WHERE valid_from = 3 AND valid_to = 4", 4, "ends where the next one of its key"),
    ("UPDATE node SET valid_to = 5 WHERE node_id = 2", 5, "ends where the next one of its key does not begin"),
    ("DELETE FROM block WHERE number = 5", 5, "lacks the block"),
    ("DELETE FROM block WHERE number = 1", 1, "lacks the block"),
    ("DELETE FROM raw_log WHERE block_number = 4", 4, "header or raw logs differ, though all rows agree"),
    ("DELETE FROM raw_log WHERE block_number >= 6 AND log_index = 1", 6, "header or raw logs differ"),
    ("UPDATE raw_log SET data = '0x' WHERE block_number = 4 AND log_index = 0", 4, "header or raw logs differ"),
    ("UPDATE block SET timestamp = timestamp + 1 WHERE number = 6", 6, "header or raw logs differ"),
]


@pytest.mark.parametrize("side", ["ours", "theirs"])
@pytest.mark.parametrize(("statement", "block", "words"), EDITS)
def test_examine__with_rows_edited_on_either_side__names_the_block_and_the_side(pair, statement, block, words, side):
    ours, theirs = (writer.store for writer in pair)
    assert spanned(ours, theirs) == (1, 7, None)
    wrong = ours if side == "ours" else theirs
    with wrong.write() as connection:
        assert connection.execute(text(statement)).rowcount > 0
    found = examine(ours, theirs)
    assert (found.first_block, found.last_block, found.differs_at) == (1, 7, block)
    assert words in found.why
    sound = theirs if side == "ours" else ours
    assert sound.label not in found.why
    if "header or raw logs" not in words:
        assert wrong.label in found.why


def test_examine__with_the_same_edit_on_both_sides__names_both(pair):
    stores = [writer.store for writer in pair]
    for store in stores:
        with store.write() as connection:
            connection.execute(text("UPDATE node_stake SET stake = stake + 1 WHERE valid_from = 6"))
    found = examine(*stores)
    assert found.differs_at == 6
    assert all(store.label in found.why for store in stores)


def test_examine__with_a_row_that_cannot_be_read__says_which_table_to_rebuild(pair):
    ours, theirs = (writer.store for writer in pair)
    with theirs.write() as connection:
        connection.execute(text("UPDATE node_stake SET stake = 'much' WHERE valid_from = 6"))
    with pytest.raises(StoreError, match=r"A row of node_stake in the index at .*other\.sqlite cannot be read: run"):
        examine(ours, theirs)


def test_examine__with_rows_after_the_last_common_block__leaves_them_out(pair, chain):
    ours, theirs = pair
    chain.append(ev.StakeChanged(1, 1, 0, 0))
    load(ours, chain, first=8)
    assert spanned(ours.store, theirs.store) == (1, 7, None)


def test_examine__of_honest_indexes_of_different_forks__says_that_both_are_sound(writer, chain, tmp_path):
    chain.append(*registered(1), listed(1, 1))
    load(writer, chain)
    chain.rewind(1)
    chain.append(*registered(1))
    with open_writer(tmp_path / "other.sqlite", chain.deployment()) as other:
        load(other, chain)
        found = examine(writer.store, other.store)
    assert found.differs_at == 2
    assert found.why.startswith("each index's rows match its own digest")
