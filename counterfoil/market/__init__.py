"""The seam between what happened and what to do: the index at one block becomes frozen candidates.

`snapshot` asks the database, as of any block; `LiveMarket` keeps the newest one in memory. Both give the same values.
"""

from counterfoil.market.live import Head, LiveMarket
from counterfoil.market.snapshots import Snapshot, snapshot

__all__ = ["Head", "LiveMarket", "Snapshot", "snapshot"]
