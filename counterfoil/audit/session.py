"""One session's audit: by state and by index, each on its own, and the receipt against the session."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from counterfoil.audit import checks
from counterfoil.audit.index import IndexSource
from counterfoil.audit.model import WHERE, Check, Outcome, Part, SessionAudit, SessionFacts
from counterfoil.audit.state import StateSource
from counterfoil.reading import DamagedError
from counterfoil.receipt_store import ReceiptStore
from counterfoil.receipts import Receipt, ReceiptError, digest_of, parse
from counterfoil.routing import lottery
from counterfoil.routing.lottery import Candidate, LotteryError, Ranking
from indexer.errors import IndexerError, QuestionError

_FULL_ID: Final = re.compile(r"(?:0x)?([0-9a-f]{64})")
_EMPTY: Final = "0x" + "0" * 64


class Source(Protocol):
    """What both sources answer."""

    def block_hash(self, number: int) -> str | None:
        """A block's hash, None where the source does not hold it."""

    def candidates(self, facts: SessionFacts) -> tuple[Candidate, ...]:
        """The routable listings of the session's category at its snapshot."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What one source said of a session.

    `problem` says why something could not be read, `wrong` what it said that cannot be true.
    """

    part: Part
    facts: SessionFacts | None = None
    block_hash: str | None = None
    ranking: Ranking | None = None
    problem: str | None = None
    wrong: str | None = None


@dataclass(frozen=True, slots=True)
class Auditor:
    """Audits sessions of one deployment by whichever sources there are.

    `index_problem` says why an index that was asked for could not be opened: its part is then reported as unchecked.
    `names` is an index that only turns numbers and starts of ids into ids; nothing else is believed of it.
    """

    chain_id: int
    addresses: Mapping[str, str]
    receipts: ReceiptStore
    state: StateSource | None = None
    index: IndexSource | None = None
    index_problem: str | None = None
    names: IndexSource | None = None

    def session(self, reference: str) -> SessionAudit:
        """Audit one session, named by its full id, an unambiguous prefix of it, or the index's number.

        Raises QuestionError where nobody knows such a session.
        """
        by_index = self._find(reference)
        session_id = by_index.facts.session_id if by_index and by_index.facts else self._full_id(reference, by_index)
        hint = by_index.facts.opened_block if by_index and by_index.facts else None
        by_state = self._by_state(session_id, hint)
        return self._audit(session_id, by_state, by_index)

    def known(self, facts: SessionFacts) -> SessionAudit:
        """Audit a session that a source has told of already, for example one of a range."""
        by_index = self._find(facts.session_id)
        return self._audit(facts.session_id, self._by_state(facts.session_id, facts.opened_block), by_index)

    def _find(self, reference: str) -> Replay | None:
        if self.index is None:
            return None if self.index_problem is None else Replay(Part.INDEX, problem=self.index_problem)
        try:
            facts = self.index.find(reference)
        except DamagedError as error:
            return Replay(Part.INDEX, wrong=str(error))
        except QuestionError:
            raise
        except IndexerError as error:
            return Replay(Part.INDEX, problem=str(error))
        if facts is None:
            return Replay(Part.INDEX)
        return _replay(Part.INDEX, self.index, facts)

    def _by_state(self, session_id: str, hint: int | None) -> Replay | None:
        if self.state is None:
            return None
        try:
            facts = self.state.facts(session_id, hint)
        except IndexerError as error:
            return Replay(Part.STATE, problem=str(error))
        return Replay(Part.STATE) if facts is None else _replay(Part.STATE, self.state, facts)

    def _full_id(self, reference: str, by_index: Replay | None) -> str:
        full = _FULL_ID.fullmatch(reference.lower())
        if full:
            return f"0x{full[1]}"
        if by_index and by_index.wrong:
            raise DamagedError(by_index.wrong)
        if self.names is not None:
            named = self.names.find(reference)
            if named is not None:
                return named.session_id
        elif self.index is None:
            raise QuestionError(
                f"{reference[:80]!r} is not a full session id, and there is no index that knows shorter ones: give the "
                "full id of 0x and 64 hexadecimal digits."
            )
        raise QuestionError(
            f"The index holds no session {reference[:80]!r}: see `counterfoil sessions`, or bring the index up to "
            "date with `counterfoil index run`."
        )

    def _audit(self, session_id: str, by_state: Replay | None, by_index: Replay | None) -> SessionAudit:
        replays = [replay for replay in (by_state, by_index) if replay is not None]
        told = next((replay for replay in replays if replay.facts), None)
        if told is None or told.facts is None:
            return self._untold(session_id, replays)
        receipt, of_receipt = self._receipt(told.facts, told.part)
        found: list[Check] = []
        for replay in replays:
            if replay.facts is None:
                found.append(self._absent(replay, told.facts))
            else:
                found += self._of_replay(replay, replay.facts, receipt, by_state if replay is by_index else None)
        ranking = next((replay.ranking for replay in replays if replay.ranking), None)
        category = receipt.request.category if receipt else self._category(told.facts)
        return SessionAudit(session_id, told.facts, category, ranking, (*found, *of_receipt))

    def _untold(self, session_id: str, replays: list[Replay]) -> SessionAudit:
        problems = [replay for replay in replays if replay.problem or replay.wrong]
        if not problems:
            places = " or ".join(WHERE[replay.part] for replay in replays)
            raise QuestionError(
                f"There is no session {session_id} {places}: check the id and the deployment, or bring the index up "
                "to date with `counterfoil index run`."
            )
        found = tuple(
            checks.mismatch(replay.part, "session", replay.wrong)
            if replay.wrong
            else checks.unknown(replay.part, "session", replay.problem or "")
            for replay in problems
        )
        return SessionAudit(session_id, None, None, None, found)

    def _category(self, facts: SessionFacts) -> str | None:
        try:
            return self.index.category_of(facts.service_id) if self.index else None
        except IndexerError:
            return None

    def _receipt(self, facts: SessionFacts, source: Part) -> tuple[Receipt | None, list[Check]]:
        read, why = _read_receipt(self.receipts, facts.decision)
        if read is None:
            return None, [why]
        terms = checks.check_receipt(facts, read, self.chain_id, self.addresses, source)
        return (read if terms.outcome is Outcome.OK else None), [why, terms]

    def _absent(self, replay: Replay, told: SessionFacts) -> Check:
        """What it means that one source does not know a session that the other tells of."""
        part = replay.part
        if replay.wrong is not None:
            return checks.mismatch(part, "session", replay.wrong)
        if replay.problem is not None:
            return checks.unknown(part, "session", replay.problem)
        if self.index is None or self.state is None:
            return checks.unknown(part, "session", f"it is not {WHERE[part]}")
        try:
            here, there = self.index.block_hash(told.opened_block), self.state.block_hash(told.opened_block)
        except IndexerError as error:
            return checks.unknown(part, "session", str(error))
        if here == there:
            sentence = f"block {told.opened_block} is the same {WHERE[Part.INDEX]} and {WHERE[Part.STATE]}"
            return checks.mismatch(part, "session", f"it is missing {WHERE[part]}, although {sentence}")
        sentence = f"it is not {WHERE[part]}: bring the index up to date with `counterfoil index run`"
        return checks.unknown(part, "session", sentence)

    def _of_replay(
        self, replay: Replay, facts: SessionFacts, receipt: Receipt | None, state: Replay | None
    ) -> list[Check]:
        part = replay.part
        found = [
            checks.check_id(part, facts, self.chain_id, self.addresses["SessionManager"]),
            checks.check_snapshot(part, facts, replay.block_hash),
            checks.check_seed(part, facts),
        ]
        if part is Part.INDEX:
            found.append(self._of_log(facts))
        if state and state.facts:
            found.insert(0, checks.check_same_facts(facts, state.facts))
        if replay.wrong is not None:
            return [*found, checks.mismatch(part, "candidates", replay.wrong)]
        if replay.ranking is None:
            return [*found, checks.unknown(part, "candidates", replay.problem or "they could not be read")]
        candidates = replay.ranking.candidates
        if receipt:
            found.append(checks.check_market(part, candidates, receipt.candidates, Part.RECEIPT))
        elif state and state.ranking:
            found.append(checks.check_market(part, candidates, state.ranking.candidates, Part.STATE))
        found += [checks.check_service(part, facts, replay.ranking), checks.check_price(part, facts, candidates)]
        if part is Part.STATE:
            found += self._of_lens(facts, replay.ranking)
        return found

    def _of_log(self, facts: SessionFacts) -> Check:
        if self.index is None:
            return checks.unknown(Part.INDEX, "log", self.index_problem or "there is no index")
        try:
            return checks.check_log(facts, self.index.logged(facts, self.addresses))
        except IndexerError as error:
            return checks.unknown(Part.INDEX, "log", str(error))

    def _of_lens(self, facts: SessionFacts, ranking: Ranking) -> list[Check]:
        if self.state is None:
            return []
        try:
            size = self.state.category_size(facts)
            if not self.state.fits_lens(size):
                return [checks.lens_too_small(size)]
            order = self.state.order(facts, min(facts.attempt + 1, checks.LENS_ORDER))
            return [checks.check_lens(facts, ranking, order, self.state.weights(facts))]
        except IndexerError as error:
            return [checks.unknown(Part.STATE, "lens", str(error))]


def _replay(part: Part, source: Source, facts: SessionFacts) -> Replay:
    block_hash = None
    try:
        block_hash = source.block_hash(facts.snapshot_block)
        candidates = source.candidates(facts)
        ranking = lottery.rank(candidates, bytes.fromhex(facts.draw_seed[2:]), facts.cap)
    except (LotteryError, DamagedError) as error:
        return Replay(part, facts, block_hash, wrong=str(error))
    except IndexerError as error:
        return Replay(part, facts, block_hash, problem=str(error))
    return Replay(part, facts, block_hash, ranking)


def _read_receipt(store: ReceiptStore, decision: str) -> tuple[Receipt | None, Check]:
    if decision == _EMPTY:
        return None, checks.unknown(Part.RECEIPT, "digest", "the session committed to no receipt")
    try:
        data = store.read(decision)
    except IndexerError as error:
        return None, checks.unknown(Part.RECEIPT, "digest", str(error))
    if data is None:
        sentence = f"{store.path(decision)} is missing: ask the session's client for it and put it there"
        return None, checks.unknown(Part.RECEIPT, "digest", sentence)
    found = digest_of(data)
    if found != decision:
        # The copy is damaged or another's; that says nothing against the session.
        sentence = (
            f"{store.path(decision)} has the digest {found}: it was cut or changed, or is another session's; "
            "ask the session's client for it again"
        )
        return None, checks.unknown(Part.RECEIPT, "digest", sentence)
    try:
        return parse(data), checks.receipt_matches(decision)
    except ReceiptError as error:
        return None, checks.mismatch(Part.RECEIPT, "digest", f"the committed receipt is not valid: {error}")
