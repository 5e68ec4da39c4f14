"""Every revert reason of the contracts is asserted by a test, and every asserted reason exists."""

import ast
import re

import pytest

from tests.contracts.conftest import ROOT

REASON = re.compile(r'"([a-z]+: [^"]+)"')
SOURCES = sorted([*(ROOT / "contracts").glob("*.vy"), *(ROOT / "contracts" / "modules").glob("*.vy")])
TESTS = sorted(path for path in (ROOT / "tests" / "contracts").rglob("test_*.py"))


def reasons_of(source):
    """The reasons of a source's `assert` and `raise` lines."""
    return {
        reason
        for line in source.splitlines()
        if line.lstrip().startswith(("assert ", "raise "))
        for reason in REASON.findall(line)
    }


def strings_of(source):
    """Every text literal of a test but docstrings and comments: what it can assert."""
    tree = ast.parse(source)
    documents = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents
    }


ASSERTED = set().union(*(strings_of(path.read_text()) for path in TESTS if path.name != "test_reasons.py"))


@pytest.mark.rule("MOD-13")
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_reasons__of_a_source__are_each_asserted_by_a_test(path):
    missing = reasons_of(path.read_text()) - ASSERTED
    assert not missing, f"write a test that asserts: {sorted(missing)}"


@pytest.mark.rule("MOD-13")
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_reasons__of_a_source__are_given_by_every_assert(path):
    bare = [
        line.strip()
        for line in path.read_text().splitlines()
        if line.lstrip().startswith(("assert ", "raise ")) and not REASON.search(line)
    ]
    assert bare == []


def test_reasons__together__are_sentences_of_a_known_module():
    every = set().union(*(reasons_of(path.read_text()) for path in SOURCES))
    assert len(every) >= 60
    names = {"registry", "sessions", "reputation", "experience", "lens", "lottery", "packing", "token", "court"}
    assert {reason.split(": ")[0] for reason in every} == names
    assert all(len(reason) <= 64 and reason.isascii() for reason in every)


def test_reasons__asserted__exist_in_a_source():
    every = set().union(*(reasons_of(path.read_text()) for path in SOURCES))
    names = ("registry", "sessions", "reputation", "experience", "lens", "lottery", "packing", "court")
    prefixes = tuple(f"{name}: " for name in names)
    stale = {text for text in ASSERTED if text.startswith(prefixes)} - every
    assert stale == set()


def test_reasons_of__a_source__finds_what_reverts_and_nothing_else():
    source = 'assert a, "x: one"\n    raise "x: two"\nlog A(b="x: three")\n# assert "x: four"\n'
    assert reasons_of(source) == {"x: one", "x: two"}


def test_strings_of__a_test__skip_docstrings_and_comments():
    assert strings_of('def f():\n    """x: doc"""\n    g("x: one")  # x: note\n') == {"x: one"}
