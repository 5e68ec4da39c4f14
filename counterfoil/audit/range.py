"""Many sessions at once: totals, what receipts cannot prove (skipped attempts, caps, snapshot ages), and the shares."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain as joined
from typing import Final

from counterfoil.audit.model import Outcome, Part, SessionAudit, SessionFacts
from counterfoil.audit.session import Auditor
from counterfoil.reading import DamagedError
from counterfoil.receipts import Policy
from counterfoil.routing.lottery import Ranking, promised_shares
from indexer.errors import QuestionError

MAX_SESSIONS: Final = 100_000

Progress = Callable[[int, int], None]
Draw = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ClientUse:
    """How one client used its draws. `skipped` counts attempts of a draw that were passed over without a session."""

    client: str
    sessions: int
    draws: int
    skipped: int
    caps: tuple[int, ...]
    oldest_snapshot: int


@dataclass(frozen=True, slots=True)
class Share:
    """One service's part of the lottery sessions of its category. `promised` adds up its chances in those draws."""

    category: str
    service_id: int
    node_id: int
    sessions: int
    skipped: int
    observed: Fraction
    promised: Fraction


@dataclass(frozen=True, slots=True)
class RangeAudit:
    """The audits of the sessions opened in a range of blocks, in order of opening. Ages are in blocks."""

    first_block: int
    last_block: int
    audits: tuple[SessionAudit, ...]
    clients: tuple[ClientUse, ...]
    shares: tuple[Share, ...]
    ages: tuple[int, ...]

    @property
    def outcome(self) -> Outcome:
        """Of all audits together; no sessions are no mismatch."""
        outcomes = {audit.outcome for audit in self.audits}
        if Outcome.MISMATCH in outcomes:
            return Outcome.MISMATCH
        return Outcome.UNKNOWN if Outcome.UNKNOWN in outcomes else Outcome.OK

    def count(self, outcome: Outcome) -> int:
        """How many audits ended so."""
        return sum(audit.outcome is outcome for audit in self.audits)

    @property
    def skipped(self) -> int:
        """How many attempts were passed over without a session, all clients together."""
        return sum(client.skipped for client in self.clients)

    @property
    def parts(self) -> tuple[Part, ...]:
        """What the sessions were replayed by."""
        seen = {check.part for audit in self.audits for check in audit.checks}
        return tuple(part for part in (Part.STATE, Part.INDEX) if part in seen)

    @property
    def summary(self) -> str:
        """One line: how many decisions were replayed, by what, and how many mismatches there were."""
        parts = self.parts or (Part.STATE,)
        replayed = sum(all(audit.outcome_of(part) is Outcome.OK for part in parts) for audit in self.audits)
        by = " and ".join(f"by {part}" for part in parts)
        mismatches = self.count(Outcome.MISMATCH)
        ending = "mismatch" if mismatches == 1 else "mismatches"
        return f"{replayed} of {len(self.audits)} decisions replayed {by}, {mismatches} {ending}"


def audit_range(auditor: Auditor, first: int, last: int, progress: Progress | None = None) -> RangeAudit:
    """Audit every session opened in blocks `first` to `last`; `progress` gets how many are done, of how many.

    Lists what the chain's logs or the index tell of, so that a session which one of them hides is seen. Raises
    QuestionError for an empty range and for more than 100,000 sessions.
    """
    if not 0 <= first <= last:
        raise QuestionError(f"Blocks {first} to {last} are no range: give the first block, then the last.")
    facts = _sessions(auditor, first, last)
    audits = []
    for done, one in enumerate(facts, start=1):
        audits.append(auditor.known(one))
        if progress is not None:
            progress(done, len(facts))
    return summarise(first, last, audits, _node_finder(auditor))


def summarise(first: int, last: int, audits: Sequence[SessionAudit], node_of: Callable[[int], int]) -> RangeAudit:
    """Put finished audits together; `node_of` gives the node of a service."""
    facts = [audit.facts for audit in audits if audit.facts is not None]
    skipped = _skipped(facts)
    return RangeAudit(
        first_block=first,
        last_block=last,
        audits=tuple(audits),
        clients=_clients(facts, skipped),
        shares=_shares(audits, skipped, node_of),
        ages=tuple(sorted(one.snapshot_age for one in facts)),
    )


def _sessions(auditor: Auditor, first: int, last: int) -> list[SessionFacts]:
    facts: dict[str, SessionFacts] = {}
    for one in joined(_by_state(auditor, first, last), _by_index(auditor, first, last)):
        facts.setdefault(one.session_id, one)
        if len(facts) > MAX_SESSIONS:
            raise QuestionError(f"Blocks {first} to {last} hold over {MAX_SESSIONS} sessions: ask for fewer.")
    return sorted(facts.values(), key=lambda one: one.opened_block)


def _by_state(auditor: Auditor, first: int, last: int) -> Iterator[SessionFacts]:
    if auditor.state is not None:
        yield from auditor.state.facts_between(first, last)


def _by_index(auditor: Auditor, first: int, last: int) -> Iterator[SessionFacts]:
    if auditor.index is None:
        return
    try:
        yield from auditor.index.facts_between(first, last)
    except DamagedError:
        # Where the chain lists the sessions, the damaged row is told of in the audit of its own session.
        if auditor.state is None:
            raise


def _node_finder(auditor: Auditor) -> Callable[[int], int]:
    source = auditor.index or auditor.state
    if source is None:
        raise QuestionError("There is nothing to audit by: name an RPC, or build an index.")
    return source.node_of


def _skipped(facts: Iterable[SessionFacts]) -> dict[Draw, set[int]]:
    """The attempts of each draw that have no session although a later one has."""
    opened: defaultdict[Draw, set[int]] = defaultdict(set)
    for one in facts:
        opened[one.client, one.nonce].add(one.attempt)
    return {draw: set(range(max(attempts))) - attempts for draw, attempts in opened.items()}


def _clients(facts: Sequence[SessionFacts], skipped: dict[Draw, set[int]]) -> tuple[ClientUse, ...]:
    mine: defaultdict[str, list[SessionFacts]] = defaultdict(list)
    for one in facts:
        mine[one.client].append(one)
    return tuple(
        ClientUse(
            client=client,
            sessions=len(sessions),
            draws=len({one.nonce for one in sessions}),
            skipped=sum(len(passed) for (who, _), passed in skipped.items() if who == client),
            caps=tuple(sorted({one.cap for one in sessions if one.cap is not None})),
            oldest_snapshot=max(one.snapshot_age for one in sessions),
        )
        for client, sessions in sorted(mine.items())
    )


def _shares(
    audits: Iterable[SessionAudit], skipped: dict[Draw, set[int]], node_of: Callable[[int], int]
) -> tuple[Share, ...]:
    observed: Counter[tuple[str, int]] = Counter()
    passed: Counter[tuple[str, int]] = Counter()
    promised: defaultdict[tuple[str, int], Fraction] = defaultdict(Fraction)
    seen: set[Draw] = set()
    for audit in audits:
        drawn = _lottery_draw(audit)
        if drawn is None:
            continue
        facts, ranking = drawn
        category = audit.category or facts.category_id
        observed[category, facts.service_id] += 1
        for service_id, share in promised_shares(ranking, facts.attempt).items():
            promised[category, service_id] += share
        draw = (facts.client, facts.nonce)
        if draw not in seen:
            seen.add(draw)
            passed.update((category, ranking.order[i]) for i in skipped[draw] if i < len(ranking.order))
    totals: Counter[str] = Counter()
    for (category, _), count in observed.items():
        totals[category] += count
    return tuple(
        Share(
            category=category,
            service_id=service_id,
            node_id=node_of(service_id),
            sessions=observed[category, service_id],
            skipped=passed[category, service_id],
            observed=Fraction(observed[category, service_id], totals[category]),
            promised=promised[category, service_id] / totals[category],
        )
        for category, service_id in sorted(set(joined(observed, promised)))
    )


def _lottery_draw(audit: SessionAudit) -> tuple[SessionFacts, Ranking] | None:
    facts, ranking = audit.facts, audit.ranking
    if facts is None or ranking is None or facts.policy != Policy.LOTTERY:
        return None
    return (facts, ranking) if facts.attempt < len(ranking.order) else None
