"""The private copy: a fault is in it alone, is compiled, and is gone afterwards."""

import json
import re

import pytest

from tests.mutation.plan import CONTRACTS, TESTS
from tests.mutation.tree import private_tree

TOKEN = "modules/token.vy"
CHOICES = "modules/choices.vy"
LEDGER = "ExperienceLedger.vy"
# Asks Ape whether these contracts differ from their artifacts.
DIFFERING = """
import json
from tests.contracts.conftest import ROOT, project

def test_code(project):
    for name in ("RoutingLens", "SessionManager"):
        artifact = json.loads((ROOT / "counterfoil" / "chain" / "artifacts" / (name + ".json")).read_text())
        compiled = getattr(project, name).contract_type.runtime_bytecode.bytecode
        assert compiled.removeprefix("0x") != artifact["runtime_bytecode"].removeprefix("0x"), name
"""


@pytest.fixture(scope="module")
def tree():
    with private_tree() as tree:
        yield tree


def probe(tree, text, seconds=20):
    """Write a test and run it."""
    folder = tree.root / "tests" / "probe"
    folder.mkdir(exist_ok=True)
    (folder / "__init__.py").touch()
    (folder / "test_probe.py").write_text(text)
    return tree.run(["tests/probe"], seconds)


def mutated(text, old, new):
    assert text.count(old) == 1
    return text.replace(old, new)


def test_changed__of_a_module__touches_the_copy_alone_and_is_undone(tree):
    source = (CONTRACTS / TOKEN).read_text()
    with tree.changed(TOKEN, source + "# fault\n"):
        assert (tree.contracts / TOKEN).read_text() == source + "# fault\n"
        assert (CONTRACTS / TOKEN).read_text() == source
    assert (tree.contracts / TOKEN).read_text() == source


def test_changed__of_a_module__is_in_the_code_of_all_its_users_and_kept_for_none(tree):
    """A run in which a user keeps the code of before would say of a fault that the tests missed it."""
    source, users = (CONTRACTS / CHOICES).read_text(), {"RoutingLens", "SessionManager"}
    with tree.changed(CHOICES, mutated(source, "client, nonce, category_id)", "client, nonce + 1, category_id)")):
        assert probe(tree, DIFFERING, 200).failed == ""
    kept = json.loads((tree.root / ".build" / "__local__.json").read_text())["contractTypes"]
    assert (users & set(kept), "NodeRegistry" in kept) == (set(), True)


def test_users__of_files__are_what_their_code_is_part_of(tree):
    assert [path.name for path in tree.users("SessionManager.vy")] == ["SessionManager.vy"]
    users = {"DisputeCourt.vy", "NodeRegistry.vy", "SessionManager.vy", "TokenHarness.vy"}
    assert {path.name for path in tree.users(TOKEN)} == users


def test_users__of_a_module_that_a_module_imports__are_the_contracts_behind_both(tree):
    lens, users = tree.contracts / "RoutingLens.vy", tree.users("modules/packing.vy")
    assert "packing" not in lens.read_text()
    assert lens in users
    assert [path for path in users if path.parent.name == "modules"] == []


def test_code__with_a_comment_more__is_the_same(tree):
    source = (CONTRACTS / LEDGER).read_text()
    before = tree.code(LEDGER)
    with tree.changed(LEDGER, source + "# only a comment\n"):
        assert tree.code(LEDGER) == before
    with tree.changed(LEDGER, mutated(source, "len(record.tool) > 0", "len(record.tool) > 1")):
        assert tree.code(LEDGER) != before


def test_code__with_a_constructor_changed__is_different(tree):
    source = (CONTRACTS / LEDGER).read_text()
    before = tree.code(LEDGER)
    with tree.changed(
        LEDGER, mutated(source, "    log ExperienceDeployed(session_manager=session_manager.address)\n", "")
    ):
        assert tree.code(LEDGER) != before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [(LEDGER, "len(record.tool) > 0", "len(undeclared) > 0"), (CHOICES, "= 2 ** 32", "= 1 ** 32")],
    ids=["a mistake", "what the compiler stumbles over"],
)
def test_code__that_does_not_compile__is_none_and_silent(tree, capfd, file, old, new):
    with tree.changed(file, mutated((CONTRACTS / file).read_text(), old, new)):
        assert tree.code(file) is None
    assert capfd.readouterr() == ("", "")


def test_run__of_passing_tests__names_no_failure(tree):
    assert probe(tree, "def test_fine():\n    pass\n").failed == ""


def test_run__of_failing_tests__names_the_first(tree):
    text = "def test_a():\n    pass\ndef test_b():\n    assert 1 == 2\ndef test_c():\n    assert False\n"
    assert probe(tree, text).failed == "tests/probe/test_probe.py::test_b"


def test_run__of_a_failing_property__does_not_shrink_or_remember_it(tree):
    text = """
from hypothesis import Phase, given, settings, strategies

def test_settings():
    assert Phase.shrink not in settings().phases
    assert settings().database is None

@given(strategies.integers(0, 10**9))
def test_large(number):
    assert number < 5
"""
    outcome = probe(tree, text)
    assert outcome.failed == "tests/probe/test_probe.py::test_large"
    again = probe(tree, text)
    found = [re.search(r"number=(\d+)", one.output).group(1) for one in (outcome, again)]
    assert found[0] == found[1] != "5"


def test_run__of_tests_that_cannot_be_collected__is_a_failure(tree):
    assert probe(tree, "raise ValueError\n").failed == "tests/probe/test_probe.py"


def test_run__without_end__is_stopped(tree):
    folder = tree.root / "tests" / "probe"
    folder.mkdir(exist_ok=True)
    (folder / "__init__.py").touch()
    (folder / "test_probe.py").write_text("import threading\ndef test_long():\n    threading.Event().wait()\n")
    outcome = tree.run(["tests/probe"], 3)
    assert outcome.failed == "time was up"
    assert outcome.seconds >= 3


def test_run__of_no_tests__is_an_error(tree):
    with pytest.raises(RuntimeError, match="pytest ended with 4 instead of running tests"):
        tree.run(["tests/nowhere"], 20)


def test_plan__of_tests__names_what_there_is(tree):
    targets = {target for targets in TESTS.values() for target in targets}
    assert {target for target in targets if not (tree.root / target).exists()} == set()
