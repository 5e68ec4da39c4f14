"""The two trees: drawn whole, and every sentence that a user gets says what to do next."""

import ast
import inspect
import re
from pathlib import Path

from indexer import errors

ROOT = Path(__file__).resolve().parents[2]
CLASSES = {name: kind for name, kind in vars(errors).items() if inspect.isclass(kind)}
# What is wrong comes first; after the first stop comes what to do, or what the loop does.
REMEDY = re.compile(
    r"(^|[:;.?(,].*\b)(run|set|unset|correct|move|name|stop|wait|waiting|ask|asking|try|check|deploy|compare|use|fill|build|"
    r"see|create|make|type|is the node running|is it an RPC address)\b|_MEND",
    re.IGNORECASE,
)


def drawn():
    """The classes of the drawing with their depth in it."""
    for line in errors.__doc__.splitlines():
        names = re.findall(r"[A-Z]\w+Error\b", line.split("  ")[0] if "──" not in line else line.split("── ")[1])
        depth = len(re.match(r"[│├└─ ]*", line).group()) // 4
        yield from ((name, depth) for name in names[: 1 if re.search(r"Error  +\S", line) else None])


def test_errors__all__stand_in_the_drawing_under_their_parent():
    above = {}
    found = {}
    for name, depth in drawn():
        above[depth] = name
        found[name] = above.get(depth - 1)
    parents = {
        name: kind.__mro__[1].__name__ if kind is not errors.IndexerError else None for name, kind in CLASSES.items()
    }
    assert found == parents


def test_errors__all__are_the_sources_or_the_users():
    roots = {errors.IndexerError, errors.RetryableError, errors.UserError}
    for kind in set(CLASSES.values()) - roots:
        assert issubclass(kind, errors.RetryableError) != issubclass(kind, errors.UserError)
        assert kind.__doc__


def words_of(sentence):
    """The words of a literal sentence, with the names of the constants in it."""
    parts = [part for part in ast.walk(sentence) if isinstance(part, ast.Constant | ast.Name)]
    return " ".join(str(part.value) if isinstance(part, ast.Constant) else part.id for part in parts)


def raised():
    """Every place in indexer/ that makes one of these errors with a literal sentence, and its words."""
    for path in sorted((ROOT / "indexer").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            makes_one = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLASSES
            if makes_one and node.args and isinstance(node.args[0], ast.Constant | ast.JoinedStr):
                yield f"{path.name}:{node.lineno}", words_of(node.args[0])


def test_errors__where_they_are_raised__say_what_to_do():
    places = dict(raised())
    assert {place: words for place, words in places.items() if not REMEDY.search(words)} == {}
    assert len(places) > 40
