"""Reading an index that may be damaged or edited by hand: every fault ends in a sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import SQLAlchemyError

from counterfoil.receipts import ReceiptError
from counterfoil.routing.lottery import LotteryError
from indexer.errors import StoreError
from indexer.query import Store, open_store
from indexer.settings import Settings


class DamagedError(StoreError):
    """A row says what no event can have said."""


@contextmanager
def reading() -> Iterator[None]:
    """Turn what the driver or a column's type makes of a damaged file into StoreError or DamagedError."""
    try:
        yield
    except SQLAlchemyError as error:
        raise StoreError(
            f"The index cannot be read ({type(error).__name__}): build it again in a new file with --database."
        ) from error
    except (ReceiptError, LotteryError):
        raise
    except (ValueError, TypeError) as error:
        sentence = f"A row of the index is damaged: {str(error)[:200]}; run `counterfoil index rebuild`."
        raise DamagedError(sentence) from error


@contextmanager
def open_index(settings: Settings) -> Iterator[Store]:
    """Open the index that the settings name, for questions. Raises StoreError."""
    with reading(), open_store(settings.database_url()) as store:
        yield store
