"""How deep JSON text nests, seen before it is decoded: the decoder recurses in C."""

import re
from typing import Final

# Never gives back what it took and needs no closing quote: an unfinished string is read once, not once a quote in it.
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKETS: Final = re.compile(rb"[\[\]{}]")


def nests_deeper(data: bytes, levels: int) -> bool:
    """Whether some bracket of the text stands inside of `levels` others. What is no JSON has an answer too."""
    depth = 0
    for bracket in _BRACKETS.finditer(_STRINGS.sub(b"", data)):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > levels:
            return True
    return False
