"""Small faults in Vyper sources: found on the compiler's own syntax tree, made by position in the source text.

Every fault is one edit. Nothing is changed in comments, docstrings, reasons, types, events, structs and interfaces.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff

from vyper import ast as vy

OPERATORS = {
    "+": ("-",),
    "-": ("+",),
    "*": ("//",),
    "//": ("*",),
    "%": ("*",),
    "<<": (">>",),
    ">>": ("<<",),
    "&": ("|",),
    "|": ("&",),
    "+=": ("-=",),
    "-=": ("+=",),
}
COMPARISONS = {
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
}
BOOLEANS = {"and": ("or",), "or": ("and",)}
NAMES = {"True": "False", "False": "True", "min": "max", "max": "min"}
# What stands beside a word and means the other party, or the other half of a packed word.
TWINS = {
    "client": "operator",
    "operator": "client",
    "_low": "_high",
    "_high": "_low",
    "_first": "_second",
    "_second": "_first",
}
DROPPED = (vy.Assign, vy.AugAssign, vy.Log, vy.Expr)
# Longest first, so that `<=` is not taken for `<`.
_TOKENS = sorted({"**", *OPERATORS, *COMPARISONS, *BOOLEANS}, key=len, reverse=True)
_TOKEN = re.compile(r"\b(?:and|or)\b|" + "|".join(re.escape(token) for token in _TOKENS if not token.isalpha()))


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit of one file: `start` and `end` count characters, `old` is what was there."""

    file: str
    function: str
    kind: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def apply(self, source: str) -> str:
        """The source with the fault."""
        if source[self.start : self.end] != self.old:
            raise ValueError(f"{self.file} is not the source in which {self.old!r} was found at line {self.line}")
        return source[: self.start] + self.new + source[self.end :]

    def key(self, source: str) -> str:
        """What names this fault of this source in the results."""
        content = f"{self.file}\0{self.start}\0{self.end}\0{self.new}\0{source}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def lines(self, source: str) -> tuple[str, str]:
        """The whole lines before and after the edit, each with single spaces: how a list of equivalents names them."""
        first = source.rfind("\n", 0, self.start) + 1
        last = source.find("\n", self.end)
        before = source[first:last]
        after = source[first : self.start] + self.new + source[self.end : last]
        return " ".join(before.split()), " ".join(after.split())

    def diff(self, source: str) -> str:
        """The edit as a patch without context."""
        changed = self.apply(source).splitlines(keepends=True)
        patch = unified_diff(source.splitlines(keepends=True), changed, self.file, self.file, n=0)
        return "".join(patch)


class Mutator:
    """Finds every fault of one source."""

    def __init__(self, file: str, source: str) -> None:
        self.file = file
        self.source = source
        self.tree = vy.parse_to_ast(source)
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def mutants(self) -> list[Mutant]:
        """All faults by position, each once."""
        found = dict.fromkeys(self._constants())
        for function in self.tree.get_children(vy.FunctionDef):
            found |= dict.fromkeys(self._function(function))
        return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.new))

    def _constants(self) -> Iterator[Mutant]:
        """Faults in the values of constants."""
        for declared in self.tree.get_children(vy.VariableDecl):
            if declared.is_constant:
                for node in (declared.value, *declared.value.get_descendants()):
                    yield from self._value("", node)

    def _function(self, function: vy.FunctionDef) -> Iterator[Mutant]:
        addresses = _Addresses(function)
        skipped = {id(inner) for node in function.get_descendants() for inner in _untouched(node)}
        for node in (part for top in function.body for part in (top, *top.get_descendants())):
            if id(node) in skipped:
                continue
            yield from self._statement(function.name, node)
            yield from self._value(function.name, node)
            yield from self._role(function.name, node, addresses)

    def _statement(self, function: str, node: vy.VyperNode) -> Iterator[Mutant]:
        if isinstance(node, vy.Assert):
            yield self._edit(function, "removed assert", *self._span(node), "pass")
        elif isinstance(node, DROPPED) and not isinstance(getattr(node, "value", None), vy.Str):
            yield self._edit(function, "dropped statement", *self._span(node), "pass")
        if isinstance(node, vy.AugAssign):
            yield from self._between(function, "operator", node.target, node.value, OPERATORS)

    def _value(self, function: str, node: vy.VyperNode) -> Iterator[Mutant]:
        if isinstance(node, vy.BinOp):
            yield from self._between(function, "operator", node.left, node.right, OPERATORS)
        elif isinstance(node, vy.Compare):
            yield from self._between(function, "comparison", node.left, node.right, COMPARISONS)
        elif isinstance(node, vy.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from self._between(function, "boolean", left, right, BOOLEANS)
        elif isinstance(node, vy.UnaryOp) and isinstance(node.op, vy.Not):
            start, _ = self._span(node)
            operand, _ = self._span(node.operand)
            yield self._edit(function, "boolean", start, operand, "")
        elif isinstance(node, vy.Int):
            for other in {abs(node.value - 1), node.value + 1} - {node.value}:
                yield self._edit(function, "constant", *self._span(node), str(other))
        elif isinstance(node, vy.NameConstant | vy.Name):
            start, end = self._span(node)
            text = self.source[start:end]
            if text in NAMES and (isinstance(node, vy.NameConstant) or _is_called(node)):
                yield self._edit(
                    function, "constant" if text in ("True", "False") else "min/max", start, end, NAMES[text]
                )

    def _role(self, function: str, node: vy.VyperNode, addresses: "_Addresses") -> Iterator[Mutant]:
        start, end = self._span(node)
        text = self.source[start:end]
        if isinstance(node, vy.Attribute) and node.attr in TWINS and _is_read(node):
            attribute = end - len(node.attr)
            kind = "swapped half" if node.attr.startswith("_") else "swapped role"
            yield self._edit(function, kind, attribute, end, TWINS[node.attr])
        elif text == "msg.sender":
            for other in addresses.before(node)[:1]:
                yield self._edit(function, "swapped role", start, end, other)
        elif isinstance(node, vy.Name) and node.id in addresses.names and _is_read(node):
            for other in addresses.instead_of(node):
                yield self._edit(function, "swapped role", start, end, other)

    def _between(
        self, function: str, kind: str, left: vy.VyperNode, right: vy.VyperNode, table: dict[str, tuple[str, ...]]
    ) -> Iterator[Mutant]:
        """Replace the operator that stands between two operands."""
        begin, end = self._span(left)[1], self._span(right)[0]
        found = _TOKEN.search(_without_comments(self.source[begin:end]))
        if found is None or found.group() not in table:
            return
        for other in table[found.group()]:
            yield self._edit(function, kind, begin + found.start(), begin + found.end(), other)

    def _edit(self, function: str, kind: str, start: int, end: int, new: str) -> Mutant:
        line = self.source.count("\n", 0, start) + 1
        return Mutant(self.file, function, kind, line, start, end, self.source[start:end], new)

    def _span(self, node: vy.VyperNode) -> tuple[int, int]:
        start = self._lines[node.lineno - 1] + node.col_offset
        return start, self._lines[node.end_lineno - 1] + node.end_col_offset


class _Addresses:
    """The accounts that a function knows by name: arguments, and local variables from their declaration on."""

    def __init__(self, function: vy.FunctionDef) -> None:
        pure = any(getattr(decorator, "id", "") == "pure" for decorator in function.decorator_list)
        self._sender = [] if pure else ["msg.sender"]
        arguments = function.args.args
        local = function.get_descendants(vy.AnnAssign)
        self._known = [(one.arg, 0) for one in arguments if _is_address(one.annotation)]
        self._known += [(one.target.id, one.end_lineno) for one in local if _is_address(one.annotation)]
        self.names = {name for name, _ in self._known}

    def before(self, node: vy.VyperNode) -> list[str]:
        """The names that are known at a place."""
        return [name for name, line in self._known if line < node.lineno]

    def instead_of(self, node: vy.Name) -> list[str]:
        """What may stand for a name by mistake: its twin or else another one, and the sender."""
        others = [name for name in self.before(node) if name != node.id]
        return sorted(others, key=lambda name: name != TWINS.get(node.id))[:1] + self._sender


def _is_address(annotation: vy.VyperNode) -> bool:
    return isinstance(annotation, vy.Name) and annotation.id == "address"


def _is_called(node: vy.VyperNode) -> bool:
    parent = node.get_ancestor()
    return isinstance(parent, vy.Call) and parent.func is node


def _is_read(node: vy.VyperNode) -> bool:
    """Whether a name or attribute is a value here, not what is assigned to."""
    parent = node.get_ancestor()
    return not (isinstance(parent, vy.Assign | vy.AugAssign | vy.AnnAssign) and parent.target is node)


def _untouched(node: vy.VyperNode) -> list[vy.VyperNode]:
    """Types, and the reason of an assert, are no values of the program."""
    parts = [getattr(node, "annotation", None)]
    if isinstance(node, vy.Assert):
        parts.append(node.msg)
    return [inner for part in parts if part is not None for inner in (part, *part.get_descendants())]


def _without_comments(text: str) -> str:
    """The same length, with spaces for comments."""
    return re.sub(r"#[^\n]*", lambda found: " " * len(found.group()), text)
