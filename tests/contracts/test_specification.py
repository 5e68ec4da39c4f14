"""docs/specification.md and the tests name each other: no rule without a test, no test of an unknown rule."""

import ast
import re
from pathlib import Path

import pytest

from tests.contracts.conftest import ROOT

SPECIFICATION = (ROOT / "docs" / "specification.md").read_text()
TESTS = sorted((ROOT / "tests" / "contracts").rglob("test_*.py"))
PREFIXES = ["NR", "SM", "RL", "EL", "DC", "RLENS", "MOD"]


def rules_in(text):
    """The numbers of the rules, in order."""
    return re.findall(r"^- \*\*([A-Z]+-\d+)\*\* ", text, re.MULTILINE)


def named_by(function):
    """The rules that the markers of a test name."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.rule":
            yield from (argument.value for argument in decorator.args)


def cases_in(source):
    """The tests of a module with the rules that each names."""
    return {
        node.name: list(named_by(node))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def cases_of(path: Path):
    return cases_in(path.read_text())


RULES = rules_in(SPECIFICATION)
NAMED = {rule for path in TESTS for rules in cases_of(path).values() for rule in rules}
NAMES = {name for path in TESTS for name in cases_of(path)}
ROWS = [line.strip("|").split("|") for line in SPECIFICATION.splitlines() if line.startswith("| ")][1:]


def test_rules__of_each_contract__are_numbered_from_1_without_gaps():
    for prefix in PREFIXES:
        numbers = [int(rule.split("-")[1]) for rule in RULES if rule.split("-")[0] == prefix]
        assert numbers == list(range(1, len(numbers) + 1)), prefix
    assert {rule.split("-")[0] for rule in RULES} == set(PREFIXES)


def test_rules__in_the_specification__each_have_a_test():
    assert sorted(set(RULES) - NAMED) == []


def test_tests__that_name_a_rule__name_one_that_exists():
    assert sorted(NAMED - set(RULES)) == []


@pytest.mark.parametrize("path", [path for path in TESTS if "unit" in path.parts], ids=lambda path: path.stem)
def test_tests__of_a_contract__each_name_a_rule(path):
    assert [name for name, rules in cases_of(path).items() if not rules] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip()[:40])
def test_report__from_the_field__names_rules_and_a_test_that_names_one_of_them(row):
    _, rules, test = (cell.strip() for cell in row)
    assert set(rules.split(", ")) <= set(RULES)
    names = [name for path in TESTS for name, named in cases_of(path).items() if set(named) & set(rules.split(", "))]
    assert test.strip("`") in names


def test_rules_in__a_text__are_those_of_its_list():
    assert rules_in("- **SM-1** One.\n- **RLENS-12** Two: as **SM-3**.\n**SM-4** no\n") == ["SM-1", "RLENS-12"]


def test_cases_in__a_module__give_the_rules_of_their_markers():
    source = '@pytest.mark.rule("A-1", "A-2")\ndef test_a():\n    pass\n\n\ndef test_b():\n    pass\n'
    assert cases_in(source) == {"test_a": ["A-1", "A-2"], "test_b": []}
