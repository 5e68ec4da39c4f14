"""A chain with traffic in most of its blocks, and the comparison with a clean index of it."""

from indexer import events as ev
from indexer.sync import SyncOptions
from tests.indexer.conftest import clean_index, everything
from tests.indexer.model import CLIENT, Chain, Node, attested, listed, opened, rated, registered, settled

SMALL = SyncOptions(first_range=7, max_range=16, first_pause=0, longest_pause=0, poll_seconds=0.01, attempts=8)


def grow(chain, blocks, start=0):
    """Blocks of traffic, with empty ones between."""
    for number in range(start, start + blocks):
        if number % 5 == 4:
            chain.append()
        else:
            chain.append(
                opened(number), ev.PriceChanged(1, number), settled(number), rated(number), attested(number),
                ev.Credited(CLIENT, number),
            )  # fmt: skip


def busy_chain():
    """Forty-two blocks; the contracts in the first, a node and its service in the second."""
    made = Chain()
    made.append(*registered(1), listed(1, 1))
    grow(made, 40)
    return made


def assert_same_as_clean(writer, chain, tmp_path):
    with clean_index(tmp_path / "clean.sqlite", chain.deployment(), Node(chain)) as clean:
        assert everything(writer.store) == everything(clean.store)
        assert writer.cursor().number == chain.head
        assert writer.cursor().hash == chain.blocks[-1]["hash"]
