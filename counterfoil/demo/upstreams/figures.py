"""What the demo's services answer follows from what they are asked, so that every run shows the same."""

from hashlib import sha256


def figure(question: str, below: int) -> int:
    """The number from 0 to below - 1 that belongs to a question."""
    return int.from_bytes(sha256(question.encode()).digest()[:8], "big") % below
