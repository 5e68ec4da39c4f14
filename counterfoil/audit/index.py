"""What the index says: sessions by their rows, markets by the rows as of a block."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace

from sqlalchemy import select

from counterfoil import market
from counterfoil.audit.model import SessionFacts
from counterfoil.reading import reading
from counterfoil.routing.lottery import Candidate
from indexer import query
from indexer.decode import DecodeError, LogDecoder
from indexer.errors import StoreError, UnknownBlockError
from indexer.events import SessionOpened
from indexer.query import Store
from indexer.rows import Session
from indexer.store.retention import need_raw_logs
from indexer.store.tables import RAW_LOG

_LOGGED = sorted({field.name for field in fields(SessionFacts)} & {field.name for field in fields(SessionOpened)})


class IndexSource:
    """Reads one index. What is asked twice of one block is remembered under its hash."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._snapshots: dict[tuple[str, str], market.Snapshot] = {}
        self._services: dict[int, query.ServiceView] = {}

    def find(self, reference: str) -> SessionFacts | None:
        """A session by its number (decimal digits), its id, or an unambiguous prefix of its id."""
        with reading():
            found = query.session(self.store, reference).value
            return None if found is None else self._facts(found)

    def facts_between(self, first: int, last: int) -> Iterator[SessionFacts]:
        """Every session opened in a range of blocks, in order."""
        with reading():
            for row in query.sessions_between(self.store, first, last).value:
                yield self._facts(row)

    def logged(self, facts: SessionFacts, addresses: Mapping[str, str]) -> SessionFacts | None:
        """The facts as the raw log of the session's opening tells them, None where its block holds no such log.

        Raises StoreError where the index no longer keeps that block's raw logs.
        """
        wanted = select(RAW_LOG.c.address, RAW_LOG.c.topics, RAW_LOG.c.data).where(
            RAW_LOG.c.block_number == facts.opened_block, RAW_LOG.c.topics.contains(facts.session_id)
        )
        with reading(), self.store.read() as connection:
            need_raw_logs(connection, facts.opened_block, self.store.label)
            found = [_decoded(addresses, *row) for row in connection.execute(wanted)]
        opening = next((event for event in found if event is not None), None)
        if opening is None or opening.session_id != facts.session_id:
            return None
        return replace(facts, **{name: getattr(opening, name) for name in _LOGGED})

    def block_hash(self, number: int) -> str | None:
        """A block's hash, None when the index does not hold the block."""
        try:
            with reading():
                return query.as_of(self.store, number).hash
        except UnknownBlockError:
            return None

    def candidates(self, facts: SessionFacts) -> tuple[Candidate, ...]:
        """The routable listings of the session's category as of its snapshot."""
        category = self.category_of(facts.service_id)
        with reading():
            key = (category, query.as_of(self.store, facts.snapshot_block).hash)
            if key not in self._snapshots:
                self._snapshots[key] = market.snapshot(self.store, category, key[1])
        return self._snapshots[key].candidates

    def category_of(self, service_id: int) -> str:
        """The name of a service's category, which never changes."""
        return self._service(service_id).category

    def node_of(self, service_id: int) -> int:
        """The node of a service, which never changes."""
        return self._service(service_id).node_id

    def _service(self, service_id: int) -> query.ServiceView:
        if service_id not in self._services:
            with reading():
                found = query.service(self.store, service_id).value
            if found is None:
                raise StoreError(f"The index lacks service {service_id}: run `counterfoil index rebuild`.")
            self._services[service_id] = found
        return self._services[service_id]

    def _facts(self, row: Session) -> SessionFacts:
        return SessionFacts(
            session_id=row.session_id,
            client=row.client,
            service_id=row.service_id,
            node_id=row.node_id,
            operator=row.operator,
            signer=row.signer,
            price=row.price,
            max_price=row.max_price,
            policy=row.policy,
            nonce=row.nonce,
            attempt=row.attempt,
            snapshot_block=row.snapshot_block,
            snapshot_hash=row.snapshot_hash,
            draw_seed=row.draw_seed,
            price_cap=row.price_cap,
            decision=row.decision,
            opened_block=row.opened_block,
            category_id=self._service(row.service_id).category_id,
        )


def _decoded(addresses: Mapping[str, str], address: str, topics: str, data: str) -> SessionOpened | None:
    decoder, parts = LogDecoder(addresses), tuple(topics.split(","))
    try:
        event = decoder.decode(address, parts, data) if decoder.knows(address, parts[0]) else None
    except DecodeError:
        return None
    return event if isinstance(event, SessionOpened) else None
