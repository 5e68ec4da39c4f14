"""The naive way: web3.py asks for the logs of each event and decodes them, SQLModel adds each row to a session.

Of each event it writes a raw row and a row of its arguments. With `versions` that row ends the one before it about the
same subject, as in the index. It folds nothing, checks nothing, and has no digest.
"""

import json
from collections.abc import Iterator
from typing import Any

from sqlmodel import Field, MetaData, Session, SQLModel, col, create_engine, select
from web3 import HTTPProvider, Web3

from benchmarks.indexing_chain import TradedChain
from indexer.events import EVENTS
from tests.indexer.world import artifact

_BLOCKS_AN_ANSWER = 15


class _Base(SQLModel):
    metadata = MetaData()


class RawRow(_Base, table=True):
    """A log as the chain gave it."""

    block_number: int = Field(primary_key=True)
    log_index: int = Field(primary_key=True)
    block_hash: str
    tx_hash: str
    tx_index: int
    address: str
    topics: str
    data: str


class VersionRow(_Base, table=True):
    """An event's arguments, valid until the next event of its name about the same subject."""

    valid_from: int = Field(primary_key=True)
    log_index: int = Field(primary_key=True)
    valid_to: int | None = None
    name: str
    subject: str = Field(index=True)
    arguments: str


def index(chain: TradedChain, database: str, first: int, last: int, *, versions: bool) -> int:
    """Index the events of some blocks, and give how many there were."""
    engine = create_engine(database.replace("postgresql:", "postgresql+psycopg:"))
    _Base.metadata.create_all(engine)
    web3 = Web3(HTTPProvider(chain.url))
    count = 0
    for start in range(first, last + 1, _BLOCKS_AN_ANSWER):
        with Session(engine) as session:
            for log in _events(web3, chain, start, min(last, start + _BLOCKS_AN_ANSWER - 1)):
                session.add(_raw_row(log))
                row = _version_row(log)
                if versions:
                    _end_version_before(session, row)
                session.add(row)
                count += 1
            session.commit()
    engine.dispose()
    return count


def _events(web3: Web3, chain: TradedChain, first: int, last: int) -> Iterator[Any]:
    for deployed in chain.deployment.indexed():
        contract = web3.eth.contract(address=deployed.address, abi=artifact(deployed.name)["abi"])  # type: ignore[call-overload]
        for event in EVENTS[deployed.name]:
            yield from contract.events[event.__name__].get_logs(from_block=first, to_block=last)


def _raw_row(log: Any) -> RawRow:  # noqa: ANN401 - web3.py's attribute dictionary
    return RawRow(
        block_number=log["blockNumber"], log_index=log["logIndex"], block_hash=log["blockHash"].hex(),
        tx_hash=log["transactionHash"].hex(), tx_index=log["transactionIndex"], address=log["address"],
        topics="", data="",
    )  # fmt: skip


def _version_row(log: Any) -> VersionRow:  # noqa: ANN401
    arguments = dict(log["args"])
    return VersionRow(
        valid_from=log["blockNumber"], log_index=log["logIndex"], name=log["event"],
        subject=_json(next(iter(arguments.values()))), arguments=_json(arguments),
    )  # fmt: skip


def _end_version_before(session: Session, row: VersionRow) -> None:
    same = VersionRow.name == row.name, VersionRow.subject == row.subject, col(VersionRow.valid_to).is_(None)
    if before := session.exec(select(VersionRow).where(*same)).first():
        before.valid_to = row.valid_from


def _json(value: object) -> str:
    return json.dumps(value, default=bytes.hex)
