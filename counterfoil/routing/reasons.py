"""The sentences routing speaks: why a candidate was dropped, why one was chosen, why a pin was not honoured.

They go into receipts, so they are pure functions of integers and must never change for one algorithm name.
"""

from fractions import Fraction
from typing import Literal

Rule = Literal["average", "cap"]

_WAD_DIGITS = 18
_SHOWN_DIGITS = 6


def wad(value: int) -> str:
    """A WAD integer (10**18 is one) as a decimal, cut after six digits: 312345678901234567 is 0.312345."""
    whole, fraction = divmod(value, 10**_WAD_DIGITS)
    digits = f"{fraction:018d}"[:_SHOWN_DIGITS].rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def hundredths(numerator: int, denominator: int) -> str:
    """Say a ratio with two digits after the point, cut, not rounded: 350 over 3 is 116.66."""
    whole, fraction = divmod(numerator * 100 // denominator, 100)
    return f"{whole}.{fraction:02d}" if fraction else str(whole)


def percent(share: Fraction) -> str:
    """A share of one as a percent with one digit, rounded half up: 1/3 is 33.3%."""
    tenths = int(share * 1000 + Fraction(1, 2))
    return f"{tenths // 10}.{tenths % 10}%"


def above_average(price: int, total: int, count: int) -> str:
    """A price above 120% of the average of `count` candidates whose prices add up to `total`."""
    average = hundredths(total, count)
    return f"price {price} is above 120% of the average {average} of {plural(count, 'candidate')}"


def above_cap(price: int, cap: int) -> str:
    """The sentence of a price above the caller's cap."""
    return f"price {price} is above the cap {cap}"


def relaxed(cap: int, count: int) -> str:
    """The sentence of a cap that would have dropped everyone, so that nobody was dropped."""
    return f"the cap {cap} is below the price of all {plural(count, 'candidate')}, so nobody was dropped"


def won(service_id: int, attempt: int, weight: int, total: int, kept: int, dropped: int) -> str:
    """Why a service was chosen: its weight of the total weight that was left at its attempt."""
    return (
        f"service {service_id} won attempt {attempt} with weight {wad(weight)} of {wad(total)} "
        f"over {plural(kept, 'kept candidate')}; {dropped} dropped"
    )


def won_evenly(service_id: int, attempt: int, left: int, kept: int, dropped: int) -> str:
    """Why a service was chosen where every weight left was zero, so that each counted one."""
    return (
        f"service {service_id} won attempt {attempt} as one of {left} with equal chances, all weights being 0, "
        f"over {plural(kept, 'kept candidate')}; {dropped} dropped"
    )


def pinned(service_id: int, guard: str | None) -> str:
    """Why a pinned service was chosen, with what the guard would have said of it."""
    if guard is None:
        return f"service {service_id} is pinned and routable"
    return f"service {service_id} is pinned and routable, whatever the guard says: {guard}"


def not_routable(service_id: int) -> str:
    """Why a pin could not be honoured."""
    return (
        f"pinned service {service_id} is not routable in this category at this block: it is not listed "
        "there, not active, or its node holds less than the least stake; "
        "choose another service or remove the pin"
    )


def plural(count: int, noun: str) -> str:
    """Say a count with its noun: 1 candidate, 2 candidates."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
