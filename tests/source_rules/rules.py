"""The house rules of Vyper sources as functions: each takes a source and gives its findings, one sentence a line.

They keep clear of compiler faults that are known and not yet mended in the version in use, and of event shapes that
readers off chain cannot decode. They read the compiler's own annotated tree.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from vyper import ast as vy_ast
from vyper.compiler.input_bundle import FileInput, FilesystemInputBundle
from vyper.compiler.phases import CompilerData
from vyper.semantics.types import DArrayT, SArrayT
from vyper.semantics.types.function import ContractFunctionT

ROOT = Path(__file__).resolve().parents[2]
OPERATORS = (vy_ast.BinOp, vy_ast.BoolOp, vy_ast.UnaryOp, vy_ast.Compare)
SENSITIVE = ("concat", "slice", "range")
FACTORY = re.compile(r"^(raw_)?create(_|$)")
EFFECTS = ("raw_call", "send", "selfdestruct", "raw_log", "raw_revert")
VENOM = re.compile(r"experimental[-_]codegen|--venom", re.IGNORECASE)


def annotated(source, name="sample.vy"):
    """The compiler's tree of a source, with types."""
    path = ROOT / "contracts" / name
    given = FileInput(0, path, path, source)
    return CompilerData(given, FilesystemInputBundle([ROOT])).annotated_vyper_module


def nodes(module, kind):
    """Every node of a kind in a tree."""
    return module.get_descendants(kind)


def type_of(node):
    """The type that the compiler found for an expression."""
    return node._metadata.get("type")


def with_self(node, kind):
    """The node itself, if it is of that kind, and those below it."""
    below = node.get_descendants(kind)
    return [node, *below] if isinstance(node, kind) else below


def non_ascii(source) -> Iterator[str]:
    """Any character that is not ASCII."""
    for number, line in enumerate(source.splitlines(), 1):
        if not line.isascii():
            yield f"line {number}: a character that is not ASCII"


def ternaries(module) -> Iterator[str]:
    """A ternary over arrays, or with an operator in a branch."""
    for node in nodes(module, vy_ast.IfExp):
        if isinstance(type_of(node), DArrayT | SArrayT):
            yield f"line {node.lineno}: a ternary over arrays"
        elif any(with_self(branch, OPERATORS) for branch in (node.body, node.orelse)):
            yield f"line {node.lineno}: a ternary with an operator in a branch"


def factories(module) -> Iterator[str]:
    """A builtin that deploys a contract."""
    for node in nodes(module, vy_ast.Call):
        name = getattr(node.func, "id", "")
        if FACTORY.match(name):
            yield f"line {node.lineno}: {name} deploys a contract"


def has_effects(call):
    """Whether a call may change state."""
    if isinstance(call, vy_ast.ExtCall):
        return True
    name = getattr(call.func, "id", None) or getattr(call.func, "attr", "")
    if name in EFFECTS or name in ("append", "pop") or FACTORY.match(name):
        return True
    kind = type_of(call.func)
    return isinstance(kind, ContractFunctionT) and kind.is_mutable


def effects_below(node):
    """Whether anything in an expression may change state."""
    return any(has_effects(call) for call in with_self(node, (vy_ast.Call, vy_ast.ExtCall)))


def sensitive_places(module):
    """The expressions in which a change of state is evaluated twice or out of order, with a name for each."""
    for node in nodes(module, vy_ast.Call):
        if getattr(node.func, "id", "") in SENSITIVE:
            yield f"{node.func.id}(...)", [*node.args, *(keyword.value for keyword in node.keywords)]
    for node in nodes(module, vy_ast.Log):
        call = node.value
        yield "log", [*call.args, *(keyword.value for keyword in call.keywords)]
    for node in nodes(module, vy_ast.AugAssign):
        if with_self(node.target, vy_ast.Subscript):
            yield "the right side of an assignment in place to an entry", [node.value]


def misplaced_effects(module) -> Iterator[str]:
    """A call that changes state where the compiler may evaluate it twice or out of order."""
    for place, expressions in sensitive_places(module):
        for expression in expressions:
            if effects_below(expression):
                yield f"line {expression.lineno}: a call with effects inside {place}"


def missing_lock(source, module) -> Iterator[str]:
    """External functions in a file without the pragma that locks them."""
    external = [
        node.name
        for node in nodes(module, vy_ast.FunctionDef)
        if any(getattr(decorator, "id", "") == "external" for decorator in node.decorator_list)
    ]
    if external and not re.search(r"^# pragma nonreentrancy on$", source, re.MULTILINE):
        yield f"external functions ({', '.join(external)}) without `# pragma nonreentrancy on`"


def event_fields(module) -> Iterator[str]:
    """A struct in an event, or an indexed field of variable size."""
    structs = {node.name for node in nodes(module, vy_ast.StructDef)}
    for event in nodes(module, vy_ast.EventDef):
        for field in event.get_children(vy_ast.AnnAssign):
            kind, where = field.annotation, f"line {field.lineno}: {event.name}.{field.target.id}"
            indexed = isinstance(kind, vy_ast.Call)
            kind = kind.args[0] if indexed else kind
            if indexed and isinstance(kind, vy_ast.Subscript):
                yield f"{where} is indexed and of variable size"
            names = {name.id for name in with_self(kind, vy_ast.Name)}
            if names & structs or with_self(kind, vy_ast.Attribute):
                yield f"{where} is a struct"


def venom(text) -> Iterator[str]:
    """The experimental code generator."""
    for number, line in enumerate(text.splitlines(), 1):
        if VENOM.search(line):
            yield f"line {number}: the experimental code generator"


def findings(path) -> list[str]:
    """Everything that is wrong with one contract source."""
    source = path.read_text(encoding="utf-8")
    found = [*non_ascii(source), *venom(source)]
    if path.suffix == ".vy":
        module = annotated(source, str(path.relative_to(ROOT / "contracts")))
        found += missing_lock(source, module)
        for rule in (ternaries, factories, misplaced_effects, event_fields):
            found += rule(module)
    return found
