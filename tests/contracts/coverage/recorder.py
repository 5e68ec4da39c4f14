"""Which statements and which branches of the contracts were run, read from the EVM's own traces.

boa's coverage plugin marks every line between a node's first and last one, so the body of an `if` counts as run where
only its condition was, and the branch around the body is never seen. Here a statement is run when an opcode of that
very statement was, and a branch when the next statement of the same function was in the body, or was not. boa's plugin
still says which lines and branches there are, and coverage.py prints the table.

The compiler merges some statements into their neighbours, such as the second of two that store zeros. One that has no
opcode in any contract counts as run with the nearest statement before it in the same block that has one, or after it.
"""

from functools import cache

import vyper.ast as vy_ast
from boa.coverage import TitanoboaReporter
from boa.environment import Env

# Opcodes that only arrange the stack or mark a destination: POP, JUMPDEST, PUSH, DUP and SWAP.
SILENT = frozenset([0x50, 0x5B, *range(0x5F, 0xA0)])
COMPOUND = (vy_ast.If, vy_ast.For)


def statement_of(node):
    """The innermost statement that a node of the syntax tree belongs to; None outside function bodies."""
    while node is not None:
        parent = node._parent
        if isinstance(parent, vy_ast.FunctionDef):
            return node if any(node is child for child in parent.body) else None
        if isinstance(parent, COMPOUND) and is_in(node, parent.body, getattr(parent, "orelse", [])):
            return node
        node = parent
    return None


def is_in(node, *lists):
    """Say whether a node is an entry of one of these lists."""
    return any(node is entry for entries in lists for entry in entries)


def is_bare_return(statement):
    """Say whether the body of an `if` is a return of nothing."""
    return isinstance(statement.body[0], vy_ast.Return) and statement.body[0].value is None


def goes_on(statement):
    """Say whether the body of an `if` does nothing but go on with the next round of its loop."""
    return isinstance(statement.body[0], vy_ast.Continue)


def function_of(statement):
    """The function that a statement is in."""
    return statement.get_ancestor(vy_ast.FunctionDef)


def lines_of(statement):
    """The lines of a statement; of one with a body, those of its head."""
    if isinstance(statement, vy_ast.If):
        return range(statement.lineno, statement.test.end_lineno + 1)
    if isinstance(statement, vy_ast.For):
        return range(statement.lineno, statement.iter.end_lineno + 1)
    return range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)


def blocks_of(node):
    """The blocks of statements that a node is in, from the innermost to the function's."""
    while node is not None:
        if isinstance(node, (vy_ast.FunctionDef, *COMPOUND)):
            yield node.body
        node = node._parent


def key_of(node):
    """What identifies a node in every contract that its module is compiled into."""
    return node.module_node.resolved_path, node.lineno, node.col_offset


def hidden_functions(nodes, keys):
    """The first statement of each function of which no statement has an opcode, by the function's own counters."""
    functions = {pc: node for pc, node in nodes.items() if isinstance(node, vy_ast.FunctionDef)}
    return {
        pc: function.body[0]
        for pc, function in functions.items()
        if not any(key_of(statement) in keys for statement in function.body)
    }


@cache
def exits_of(path):
    """The two lines that each `if` of a file leads to, as boa's reporter names them: into the body, and around it."""
    reporter = TitanoboaReporter(path)
    targets = {}
    for line, target in reporter.arcs():
        targets.setdefault(line, set()).add(target)
    found = {}
    for node in reporter._ast.get_descendants(vy_ast.If):
        # A bare return is compiled to a jump to the function's end, which boa calls the function's own line.
        into = node.get_ancestor(vy_ast.FunctionDef).lineno if is_bare_return(node) else node.body[0].lineno
        found[node.lineno] = into, next(iter(targets[node.lineno] - {into}))
    return found


class Recorder:
    """Follows traces, and remembers the statements and the outcomes of every `if`."""

    def __init__(self):
        self.lines = {}
        self.outcomes = {}
        self.maps = {}

    def record(self, computation, contract):
        """Follow a call and the calls that it made."""
        if contract is not None and hasattr(contract, "source_map"):
            code = computation.code._raw_code_bytes
            statements, keys = self.statements(contract.source_map, code)
            self.follow(computation.code._trace, statements, keys, computation.is_error)
        for child in computation.children:
            if child.msg.code_address:
                self.record(child, Env.get_singleton()._lookup_contract_fast(child.msg.code_address))

    def statements(self, source_map, code):
        """The statement of every program counter that has one, and the keys of them all.

        Opcodes that only arrange the stack say little: the compiler shares the constants that they push, and maps them
        to whichever statement used them last. They count for statements that have no others. The jump of a `continue`
        says nothing: it is the jump over it as well.
        """
        key = id(source_map)
        if key not in self.maps:
            nodes = source_map["pc_raw_ast_map"]
            found = {pc: statement_of(node) for pc, node in nodes.items()}
            found = {pc: s for pc, s in found.items() if s is not None and not isinstance(s, vy_ast.Continue)}
            loud = {key_of(statement) for pc, statement in found.items() if code[pc] not in SILENT}
            visible = {pc: s for pc, s in found.items() if code[pc] not in SILENT or key_of(s) not in loud}
            keys = {key_of(statement) for statement in visible.values()}
            # The map is kept with its result, so that no other takes its identity.
            self.maps[key] = source_map, visible | hidden_functions(nodes, keys), keys
        return self.maps[key][1:]

    def follow(self, trace, statements, keys, reverted):
        """Walk through one trace. An `if` is open until the next statement of its own function says where it went.

        Where the call ends before that, it went around its body, or into one that has no opcode of its own.
        """
        last, open_ifs = None, {}
        for pc in trace:
            statement = statements.get(pc)
            if statement is None or statement is last:
                continue
            last = statement
            self.lines.setdefault(statement.module_node.resolved_path, set()).update(lines_of(statement))
            function = function_of(statement)
            waiting = open_ifs.get(id(function))
            if waiting is not None and waiting is not statement:
                inside = statement is waiting._parent if goes_on(waiting) else is_in(statement, waiting.body)
                self.decide(waiting, inside)
            open_ifs[id(function)] = statement if isinstance(statement, vy_ast.If) else None
        for waiting in open_ifs.values():
            if waiting is not None and not reverted:
                self.decide(waiting, not any(key_of(statement) in keys for statement in waiting.body))

    def decide(self, statement, entered):
        """Write down that an `if` went into its body, or did not."""
        self.outcomes.setdefault(key_of(statement), set()).add(entered)
        if entered:
            self.lines[statement.module_node.resolved_path].update(lines_of(statement.body[0]))

    def merged(self):
        """The lines of statements that have no opcode anywhere, by file, where the statement before them was run."""
        with_opcodes = set().union(*(keys for _, _, keys in self.maps.values()))
        for source_map, _, _ in self.maps.values():
            for block in {id(b): b for node in source_map["pc_raw_ast_map"].values() for b in blocks_of(node)}.values():
                yield from self.merged_in(block, with_opcodes)

    def merged_in(self, block, with_opcodes):
        """The same of one block of statements."""
        path = block[0].module_node.resolved_path
        visible = [statement for statement in block if key_of(statement) in with_opcodes]
        first = visible[0] if visible else block[0]
        run = first.lineno in self.lines.get(path, ())
        for statement in block:
            if statement in visible:
                run = statement.lineno in self.lines.get(path, ())
            elif run:
                yield path, lines_of(statement)

    def arcs(self, paths):
        """Everything about these files as coverage.py takes it: pairs of lines by file."""
        for path, lines in list(self.merged()):
            self.lines[path].update(lines)
        found = {path: {(-1, line) for line in self.lines.get(path, ())} for path in paths}
        for (path, line, _), outcomes in self.outcomes.items():
            if path in found:
                into, around = exits_of(path)[line]
                found[path] |= {(line, into if entered else around) for entered in outcomes}
        return found
