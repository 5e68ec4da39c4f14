"""What a node's refusal means. Providers agree on no code, so the words decide.

-32005 means range, result count or rate, depending on who sends it. What is not understood stays `other`, and the
loop halves its range as a last resort.
"""

import re
from typing import Literal

Kind = Literal["rate", "range", "history", "unsupported", "other"]

_MAX_WORDS = 1000  # characters of a message that are read

_RATE = re.compile(
    r"\brate\b|too many requests|throttl|capacity|quota|requests? per|request count|compute units|credits limited"
    r"|slow down|\b429\b",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"\branges?\b|blocks distance|limit the query|narrow your filter|try paginating|limited to|exceeds limit of"
    r"|too (many|large|big) (results|logs|blocks)|(more than|over) [\d,._]+k? (results|logs|blocks)"
    r"|(response|result|query) (is )?too (large|big)|response size|size exceeded|max (results|logs)"
    r"|up to (a )?\d+ blocks|(query|execution) timeout|request timed out",
    re.IGNORECASE,
)
_HISTORY = re.compile(
    r"\bprun(ed|ing)\b|missing trie node|history (is )?(not |un)available|historical (state|data|block)|\barchive\b"
    r"|data before \S+ is not available|receipts? not available",
    re.IGNORECASE,
)
_UNSUPPORTED = re.compile(
    r"method\b.{0,80}\b(not (found|supported|available|allowed|implemented|whitelisted)|does not exist|disabled)"
    r"|(unsupported|unknown|no such) method",
    re.IGNORECASE,
)
_HISTORY_CODE = 4444  # EIP-4444, as go-ethereum, Nethermind and Reth send it
_UNSUPPORTED_CODE = -32601

_BLOCK = r"(0x[0-9a-f]{1,16}|\d{1,18})"
_SPAN = re.compile(rf"(?:should work:|with (?:this|the) (?:block )?range) \[?{_BLOCK}(?:, ?|-){_BLOCK}", re.IGNORECASE)
_COUNT = r"(\d[\d,._]{0,12})(k?)\b"
_LIMITS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:up to|at most|limited to)(?: an?| 0 -)? {_COUNT}(?: block)?s?(?: range)?\b",
        rf"ranges over {_COUNT} blocks",
        rf"max(?:imum)?(?: blocks?)?(?: range| distance)?(?: allowed)?(?: is(?: set to)?|:| =)? {_COUNT}(?! results)",
        rf"range \d+(?: - \d+)? (?:exceeds limit of|is bigger than range limit) {_COUNT}",
        rf"block range exceeds server limit, narrow your filter: {_COUNT}",
    )
]


def classify(code: object, message: str) -> Kind:
    """Sort a node's error by its words, and by the codes that mean one thing everywhere."""
    words = message[:_MAX_WORDS]
    if code == 429 or _RATE.search(words):
        return "rate"
    if code == _HISTORY_CODE:
        return "history"
    if code == _UNSUPPORTED_CODE:
        return "unsupported"
    if _RANGE.search(words):
        return "range"
    if _HISTORY.search(words):
        return "history"
    return "unsupported" if _UNSUPPORTED.search(words) else "other"


def usable_blocks(message: str) -> int | None:
    """Give how many blocks the refusal says that a request may span, None where it names no number.

    It names two blocks ("this block range should work: [0x1, 0x10]"), or a limit ("up to a 2K block range").
    """
    words = message[:_MAX_WORDS]
    if found := _SPAN.search(words):
        first, last = (int(text, 16 if "x" in text.lower() else 10) for text in found.groups())
        return last - first + 1 if last >= first else None
    for limit in _LIMITS:
        if found := limit.search(words):
            digits, thousands = found.groups()
            return int(re.sub(r"\D", "", digits)) * (1000 if thousands else 1) or None
    return None
