"""Texts of others made harmless: chains, nodes and services write anything, and a terminal obeys some characters."""

from typing import Final

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def printable(text: str, instead: str = REPLACEMENT) -> str:
    """The text with everything that is not printable replaced, line ends too."""
    return "".join(letter if letter.isprintable() else instead for letter in text)
