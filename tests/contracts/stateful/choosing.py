"""How the rules choose: mostly what can work, sometimes what must not."""

from hypothesis import strategies as st

from tests.model.core import MAX_AMOUNT

SMALL = st.integers(0, 60)
EDGES = st.sampled_from(
    [99, 100, 500, 999, 1_000, 1_001, 2**96 - 1, 2**96, 2**120, 2**121 - 1, 2**127, MAX_AMOUNT - 1, MAX_AMOUNT, 2**255]
)
AMOUNTS = st.one_of(SMALL, SMALL, EDGES)
BYTES = st.sampled_from([bytes(32), b"\2" * 32])


def mostly(data, likely, seldom, label):
    """A choice of the likely kind, seven times of eight."""
    unlikely = data.draw(st.integers(0, 7), label=f"{label}: 7 is unlikely") == 7
    return data.draw(seldom if unlikely else likely, label=label)


def one_of(data, likely, every, label):
    """One of the likely entries, seldom one of all; of all where none is likely."""
    likely, every = list(likely), list(every)
    return mostly(data, st.sampled_from(likely or every), st.sampled_from(every), label)


def changed(data, draw, fields, label):
    """A tuple with names, seldom with another value in one of its fields."""
    if data.draw(st.integers(0, 5), label=f"{label}: 5 changes a field") < 5:
        return draw
    name = data.draw(st.sampled_from(sorted(fields)), label="field")
    return draw._replace(**{name: data.draw(fields[name], label=name)})
