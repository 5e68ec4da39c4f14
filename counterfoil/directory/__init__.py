"""The directory: every listing with what other agents found of it, kept in memory as of the newest indexed block.

`Board` adds up and ranks, and touches nothing else; `Directory` keeps one current from the index's changes.
"""

from counterfoil.directory.board import Board, Experience, Ranked
from counterfoil.directory.directory import MAX_RECORDS_AS_OF, Directory, board_as_of, experience_as_of
from counterfoil.directory.listings import MAX_PLACES, LiveListings, StoredListings
from counterfoil.directory.records import record_of

__all__ = [
    "MAX_PLACES", "MAX_RECORDS_AS_OF", "Board", "Directory", "Experience", "LiveListings", "Ranked",
    "StoredListings", "board_as_of", "experience_as_of", "record_of",
]  # fmt: skip
