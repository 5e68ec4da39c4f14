"""What an operator could do better, from its node's state alone. Pure: rules in a fixed order, one sentence each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterfoil.cli.output import amount, rating
from counterfoil.routing.reasons import plural

LOW_RATING = 50
"""The mean score below which a node loses against an unrated one."""


@dataclass(frozen=True, slots=True)
class ServiceStanding:
    """A service of the node; prices in base units. `highest_kept` is the highest price that the guard keeps beside the
    category's other services, None where it keeps any; `others` counts those.
    """

    service_id: int
    category: str
    price: int
    active: bool
    routable: bool
    others: int
    highest_kept: int | None

    @property
    def kept(self) -> bool:
        """Whether the guard keeps the price."""
        return self.highest_kept is None or self.price <= self.highest_kept


@dataclass(frozen=True, slots=True)
class Standing:
    """A node as of a block of time `now` (seconds). Amounts are base units, `credit` is what the operator may withdraw.

    `unreachable` says in words why agents may not reach the endpoint, "" where nothing stands against it.
    """

    node_id: int
    now: int
    stake: int
    min_stake: int
    stake_per_slot: int
    unbonding: int
    release_at: int
    holds: int
    active_sessions: int
    rating_sum: int
    rating_count: int
    credit: int
    services: tuple[ServiceStanding, ...]
    unreachable: str = ""

    @property
    def max_concurrent(self) -> int:
        """How many sessions the stake pays for at a time."""
        return self.stake // self.stake_per_slot

    @property
    def releasable(self) -> bool:
        """Whether unbonded stake can be withdrawn now."""
        return self.unbonding > 0 and self.holds == 0 and self.now >= self.release_at


@dataclass(frozen=True, slots=True)
class Improvement:
    """What could be better, a sentence, and the command that does it or shows more."""

    sentence: str
    command: str


def highest_kept(others: Sequence[int]) -> int | None:
    """The highest price that the guard keeps beside the prices of others, None where it keeps any.

    A price counts in the average that it is compared with: price x n x 100 <= 120 x (price + sum of the others).
    """
    if not others:
        return None
    return 120 * sum(others) // (100 * (len(others) + 1) - 120)


def why_not_routed(standing: Standing) -> str | None:
    """Why no agent is routed to a node, a sentence; None where some service of it can be."""
    if standing.stake < standing.min_stake:
        return f"its stake of {amount(standing.stake)} is below the least stake of {amount(standing.min_stake)}"
    if not standing.services:
        return "it lists no service"
    if not any(service.active for service in standing.services):
        return "every service of it is paused"
    return None


def improvements(standing: Standing) -> list[Improvement]:
    """What to improve, in the order in which it matters."""
    return [*_about_stake(standing), *_about_services(standing), *_about_standing(standing), *_about_money(standing)]


def _about_stake(standing: Standing) -> Iterator[Improvement]:
    command, missing = f"counterfoil node stake {standing.node_id}", standing.min_stake - standing.stake
    to_next = standing.stake_per_slot - standing.stake % standing.stake_per_slot
    if missing > 0:
        yield Improvement(
            f"The stake is {amount(missing)} below the least one, so nobody is routed here.", f"{command} {missing}"
        )
    elif standing.max_concurrent == 0:
        yield Improvement("The stake pays for no session at a time.", f"{command} {to_next}")
    elif standing.active_sessions >= standing.max_concurrent:
        yield Improvement(
            f"All {plural(standing.max_concurrent, 'slot')} are taken, which leaves a tenth of the weight: stake "
            f"{amount(to_next)} for one more, and {amount(standing.stake_per_slot)} for each further one.",
            f"{command} {to_next}",
        )


def _about_services(standing: Standing) -> Iterator[Improvement]:
    if not standing.services:
        yield Improvement(
            "No service is listed, so nobody can come.",
            f"counterfoil node list-service {standing.node_id} --category ... --price ...",
        )
    for service in standing.services:
        name = f"Service {service.service_id} ({service.category})"
        if not service.active:
            yield Improvement(f"{name} is paused.", f"counterfoil node resume-service {service.service_id}")
        if not service.kept and service.highest_kept is not None:
            yield Improvement(
                f"{name} asks {amount(service.price)}, over 120% of its category's average, so the lottery drops it: "
                f"the highest price that is kept is {amount(service.highest_kept)}.",
                f"counterfoil node set-price {service.service_id} {service.highest_kept}",
            )


def _about_standing(standing: Standing) -> Iterator[Improvement]:
    if standing.rating_sum < LOW_RATING * standing.rating_count:
        mean = rating(standing.rating_sum, standing.rating_count).split(" ")[0]
        yield Improvement(
            f"The rating is {mean} of 100 over {plural(standing.rating_count, 'rating')}, less than the {LOW_RATING} "
            "that a new node starts with: see what agents found.",
            "counterfoil service SERVICE_ID --experience",
        )
    if standing.unreachable:
        yield Improvement(f"{standing.unreachable}.", f"counterfoil node set-endpoint {standing.node_id} URL")


def _about_money(standing: Standing) -> Iterator[Improvement]:
    command = f"counterfoil node withdraw {standing.node_id}"
    if standing.releasable:
        yield Improvement(f"{amount(standing.unbonding)} of unbonded stake can be withdrawn now.", command)
    if standing.credit:
        yield Improvement(f"{amount(standing.credit)} of earnings can be withdrawn now.", f"{command} --earnings")
