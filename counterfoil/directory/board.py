"""Listings and summaries in memory, found by label: a page of a ranking costs what is on it, not what there is.

The order is `experience.best`'s. A listing's nearest label decides before anything else, so listings are ranked one
degree of closeness after the other, the nearest first, and no further than the page goes.
"""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby, islice

from counterfoil.routing.experience import (
    Distance,
    Listing,
    Match,
    Record,
    Summary,
    best_near,
    distances,
    headline,
    sentence,
    words,
)
from indexer.views import ServiceView

_UNRATED = Fraction(1, 2)  # as the lottery counts it (design section 5)


def reputation(view: ServiceView) -> Fraction | None:
    """Give the mean score of a listing's node, from 0 to 1; None where it is unrated."""
    return Fraction(view.rating_sum, 100 * view.rating_count) if view.rating_count else None


@dataclass(frozen=True, slots=True)
class Ranked:
    """A listing in its place: what it is, and why it stands there."""

    view: ServiceView
    match: Match


@dataclass(slots=True)
class Experience:
    """What is known of one service: summaries by tool and need, and by tool and task label.

    As with a summary, many records are counted, and then settled.
    """

    needs: dict[tuple[str, str], Summary] = field(default_factory=dict)
    tasks: dict[tuple[str, str], Summary] = field(default_factory=dict)
    _tested: str | None = field(default=None, init=False, repr=False, compare=False)

    def copy(self) -> "Experience":
        """Give one that is added to without this one."""
        needs, tasks = ({group: of.copy() for group, of in known.items()} for known in (self.needs, self.tasks))
        return Experience(needs, tasks)

    def add(self, record: Record) -> None:
        """Count one more record, and settle."""
        self.count(record)
        self.settle()

    def count(self, record: Record) -> None:
        """Count one more record, to be settled."""
        self._tested = None
        _group(self.needs, (record.tool, record.need)).count(record)
        if record.task:
            _group(self.tasks, (record.tool, record.task)).count(record)

    def settle(self) -> None:
        """Bring what was counted into its order."""
        for known in (self.needs, self.tasks):
            for summary in known.values():
                summary.settle()

    @property
    def tested(self) -> str | None:
        """The sentence about the need that the service was tried for most; None where nobody tried it."""
        if self._tested is None and (found := headline(self.needs)):
            self._tested = sentence(*found)
        return self._tested


def _group(groups: dict[tuple[str, str], Summary], group: tuple[str, str]) -> Summary:
    if (summary := groups.get(group)) is None:
        summary = groups[group] = Summary()
    return summary


class Board:
    """Every listing with its experience."""

    def __init__(self) -> None:
        self._views: dict[int, ServiceView] = {}
        self._ids: dict[str | None, list[int]] = defaultdict(list)
        self._known: dict[int, Experience] = defaultdict(Experience)
        self._by_need: dict[str, set[int]] = defaultdict(set)
        self._by_task: dict[str, set[int]] = defaultdict(set)
        self._by_word: dict[str, set[str]] = defaultdict(set)

    def put(self, view: ServiceView) -> None:
        """Take a listing as it is now; its category never changes."""
        if view.service_id not in self._views:
            insort(self._ids[None], view.service_id)
            insort(self._ids[view.category_id], view.service_id)
        self._views[view.service_id] = view

    def withdraw(self, service_ids: Iterable[int]) -> None:
        """Take listings away, as far as they are there."""
        for service_id in service_ids:
            view = self._views.pop(service_id, None)
            for ids in (self._ids[None], self._ids[view.category_id]) if view else ():
                del ids[bisect_left(ids, service_id)]

    def add(self, records: Iterable[Record]) -> None:
        """Count more records."""
        added = set()
        for record in records:
            self._known[record.service_id].count(record)
            added.add(record.service_id)
        for service_id in added:
            self._known[service_id].settle()
            self._find(service_id, self._known[service_id])

    def _find(self, service_id: int, known: Experience) -> None:
        for _, need in known.needs:
            self._by_need[need].add(service_id)
        for _, task in known.tasks:
            self._by_task[task].add(service_id)
            for word in words(task):
                self._by_word[word].add(task)

    def detach(self, service_ids: Iterable[int]) -> None:
        """Let what was read of the experience of these services stand as it is, whatever is added to them from here."""
        for service_id in service_ids:
            if service_id in self._known:
                self._known[service_id] = self._known[service_id].copy()

    def forget(self, service_ids: Iterable[int]) -> None:
        """Let go of all experience of these services; what was read of it stands as it is."""
        for service_id in service_ids:
            known = self._known.pop(service_id, Experience())
            for _, need in known.needs:
                self._by_need[need].discard(service_id)
            for _, task in known.tasks:
                self._by_task[task].discard(service_id)

    def view(self, service_id: int) -> ServiceView | None:
        """Give one listing."""
        return self._views.get(service_id)

    def experience(self, service_id: int) -> Experience:
        """Give what is known of a service."""
        return self._known.get(service_id, Experience())

    def page(
        self, category: str | None, limit: int, after: int = 0, *, routable: bool = False
    ) -> tuple[list[ServiceView], int | None]:
        """List services by id beyond `after`, all or those of a category's id; and where the next page begins."""
        ids = self._ids.get(category, [])
        views = (self._views[one] for one in islice(ids, bisect_right(ids, after), None))
        found = list(islice((view for view in views if view.routable or not routable), limit + 1))
        return found[:limit], found[limit - 1].service_id if len(found) > limit else None

    def best(self, task: str, need: str, limit: int, after: int = 0, *, routable: bool = False) -> list[Ranked]:
        """Give `limit` places of the ranking for a task and a need, beginning after so many."""
        ranking = islice(self._ranking(task, need, routable=routable), after, after + limit)
        return [Ranked(self._views[match.listing.service_id], match) for match in ranking]

    def _ranking(self, task: str, need: str, *, routable: bool) -> Iterator[Match]:
        labels = {label for word in words(task) for label in self._by_word.get(word, ())}
        far = distances(task, labels)
        seen: set[int] = set()
        for some in self._nearest_first(far, need):
            new = {one for one in some if one in self._views and (self._views[one].routable or not routable)} - seen
            seen |= new
            yield from best_near(map(self._listing, new), far, need)

    def _nearest_first(self, far: Mapping[str, Distance], need: str) -> Iterator[Iterable[int]]:
        """Give services by how close their nearest label is, then those tried for the need, then all."""
        for _, labels in groupby(sorted(far, key=far.__getitem__), key=far.__getitem__):
            yield set[int]().union(*(self._by_task[label] for label in labels))
        yield self._by_need.get(need, ()) if need else ()
        yield self._views

    def _listing(self, service_id: int) -> Listing:
        view = self._views[service_id]
        known = self.experience(service_id)
        rating = reputation(view)
        return Listing(service_id, view.price, _UNRATED if rating is None else rating, known.needs, known.tasks)
