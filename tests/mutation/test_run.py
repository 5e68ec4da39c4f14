"""Choosing, trying and keeping mutants. The tree here decides by a rule instead of minutes of tests."""

from contextlib import contextmanager

import pytest

from tests.mutation.equivalents import listed, name
from tests.mutation.plan import TESTS
from tests.mutation.results import EQUIVALENT, KILLED, NOT_VIABLE, SAME_CODE, SURVIVED, Result, Results
from tests.mutation.run import Baseline, Runner, cases, report, sampled
from tests.mutation.tree import Outcome

FILE = "modules/token.vy"
SOURCE = """# pragma version ~=0.4.3

@internal
def f(a: uint256, b: uint256):
    self.x = a + b
    self.y = a * b
    self.z = min(a, b)
"""


class RuleTree:
    """Says how a text fares by what is in it, and counts what it is asked."""

    def __init__(self, root, failing=()):
        self.root = root
        self.failing = failing
        self.text = SOURCE
        self.runs = []

    @contextmanager
    def changed(self, _file, text):
        before, self.text = self.text, text
        yield
        self.text = before

    def code(self, _file):
        if "a // b" in self.text:
            return None
        return {"Token.vy": self.text.replace("max(a, b)", "min(a, b)")}

    def run(self, targets, seconds):
        self.runs.append((tuple(targets), seconds))
        if self.text == SOURCE:
            return Outcome("test_broken" if targets[0] in self.failing else "", 2.0, "")
        return Outcome("" if "a - b" in self.text else "test_sum", 1.0, "")


@pytest.fixture
def tree(tmp_path):
    return RuleTree(tmp_path)


def runner(tree, tmp_path, equivalents=None):
    said = []
    baseline = Baseline(tree, tmp_path / "baseline.json", said.append)
    return Runner(tree, baseline, Results(tmp_path / "results.jsonl"), equivalents or {}), said


def statuses(results):
    return {result.diff.splitlines()[-1].strip("+ "): result.status for result in results}


def all_cases():
    return cases({FILE: SOURCE})


def known(one, chosen):
    return one.results.among(case.key for case in chosen)


def test_run__of_all_mutants__tells_how_each_fared(tree, tmp_path):
    one, said = runner(tree, tmp_path)
    one.run(all_cases(), again=False, say=said.append)
    found = known(one, all_cases())
    dropped = [result.status for result in found if result.kind == "dropped statement"]
    assert statuses(result for result in found if result.kind != "dropped statement") == {
        "self.x = a - b": SURVIVED,
        "self.y = a // b": NOT_VIABLE,
        "self.z = max(a, b)": SAME_CODE,
    }
    assert dropped == [KILLED] * 3
    assert {result.by for result in found if result.status == KILLED} == {"test_sum"}


def test_run__after_a_stop__goes_on_with_the_rest(tree, tmp_path):
    chosen = all_cases()
    runner(tree, tmp_path)[0].run(chosen[:3], again=False, say=print)
    ran = len(tree.runs)
    one, said = runner(tree, tmp_path)
    one.run(chosen, again=False, say=said.append)
    assert len([line for line in said if line.startswith("[")]) == len(chosen) - 3
    assert len(known(one, chosen)) == len(chosen)
    one.run(chosen, again=False, say=said.append)
    assert len(tree.runs) == ran + len(
        [case for case in chosen[3:] if "//" not in case.mutant.new + case.mutant.new and case.mutant.kind != "min/max"]
    )


def test_run__again__tries_survivors_only(tree, tmp_path):
    one, said = runner(tree, tmp_path)
    one.run(all_cases(), again=False, say=print)
    one.run(all_cases(), again=True, say=said.append)
    (line,) = [text for text in said if text.startswith("[")]
    assert "operator: survived" in line


def test_run__of_an_equivalent__runs_no_test_and_keeps_the_reason(tree, tmp_path):
    (case,) = [case for case in all_cases() if case.mutant.new == "-"]
    one, _ = runner(tree, tmp_path, {name(case.mutant, SOURCE): "sums are not looked at"})
    one.run([case], again=False, say=print)
    (result,) = known(one, [case])
    assert (result.status, result.by, tree.runs) == (EQUIVALENT, "sums are not looked at", [])
    one.run([case], again=True, say=pytest.fail)


def test_run__of_a_survivor_listed_since__becomes_equivalent(tree, tmp_path):
    (case,) = [case for case in all_cases() if case.mutant.new == "-"]
    runner(tree, tmp_path)[0].run([case], again=False, say=print)
    one, _ = runner(tree, tmp_path, {name(case.mutant, SOURCE): "sums are not looked at"})
    assert [result.status for result in known(one, [case])] == [SURVIVED]
    one.run([case], again=False, say=print)
    assert [result.status for result in known(one, [case])] == [EQUIVALENT]


def test_baseline__of_tests_that_fail_anyway__leaves_them_out_and_says_so(tmp_path):
    tree = RuleTree(tmp_path, failing=("tests/contracts/unit/session_manager",))
    one, said = runner(tree, tmp_path)
    targets, limit = one.baseline.targets(FILE)
    passing = [target for target in TESTS[FILE] if target not in tree.failing]
    assert targets == passing
    assert limit == 4 * len(passing) * 2.0 + 60
    assert sum("FAILS WITHOUT A FAULT at test_broken and is left out" in line for line in said) == 1


def test_baseline__without_any_passing_test__is_an_error(tmp_path):
    tree = RuleTree(tmp_path, failing=("tests/contracts/lottery", "tests/contracts/unit/routing_lens"))
    with pytest.raises(RuntimeError, match=r"no tests of RoutingLens\.vy pass without a fault"):
        runner(tree, tmp_path)[0].baseline.targets("RoutingLens.vy")


def test_baseline__measured_before__is_not_measured_again(tree, tmp_path):
    runner(tree, tmp_path)[0].baseline.targets(FILE)
    ran = len(tree.runs)
    runner(tree, tmp_path)[0].baseline.targets(FILE)
    assert len(tree.runs) == ran == len(TESTS[FILE])


def test_baseline__of_changed_tests__is_measured_anew(tree, tmp_path):
    runner(tree, tmp_path)[0].baseline.targets(FILE)
    folder = tmp_path / "tests" / "contracts"
    folder.mkdir(parents=True)
    (folder / "test_new.py").write_text("")
    runner(tree, tmp_path)[0].baseline.targets(FILE)
    assert len(tree.runs) == 2 * len(TESTS[FILE])


def test_sampled__with_a_seed__is_the_same_and_in_order():
    among = all_cases()
    first = sampled(among, 3, seed=1)
    assert first == sampled(among, 3, seed=1)
    assert [among.index(case) for case in first] == sorted(among.index(case) for case in first)
    assert any(sampled(among, 3, seed=seed) != first for seed in range(2, 9))
    assert sampled(among, 10**6, seed=1) == among


def test_results__with_half_a_line_at_the_end__keep_the_whole_ones(tmp_path):
    path = tmp_path / "deep" / "results.jsonl"
    kept = Result("k", FILE, 5, "operator", KILLED, "test_sum", 1.5, "diff")
    Results(path).add(kept)
    with path.open("a") as file:
        file.write('{"key": "half')
    assert Results(path).get("k") == kept
    assert Results(path).get("half") is None


def test_results__of_one_key_twice__count_the_later(tmp_path):
    results = Results(tmp_path / "results.jsonl")
    for status in (SURVIVED, KILLED):
        results.add(Result("k", FILE, 5, "operator", status, "", 1.5, "diff"))
    assert Results(results.path).get("k").status == KILLED


def test_report__of_results__counts_by_file_and_shows_survivors():
    def result(key, status, file=FILE):
        return Result(key, file, 5, "operator", status, "", 1, f"-a + b\n+a - b {key}\n")

    found = [result("1", KILLED), result("2", SURVIVED), result("3", NOT_VIABLE), result("4", SAME_CODE)]
    lines = report([FILE, "A.vy"], [*found, result("5", EQUIVALENT), result("6", KILLED, "A.vy")])
    table = {line.split()[0]: line.split()[1:] for line in lines[1:4]}
    assert table == {
        FILE: ["5", "1", "1", "1", "2", "1", "50.0%"],
        "A.vy": ["1", "0", "0", "0", "1", "1", "100.0%"],
        "all": ["6", "1", "1", "1", "3", "2", "66.7%"],
    }
    assert lines[4:] == ["", "survived: contracts/modules/token.vy:5 (operator)", "-a + b\n+a - b 2"]


def test_report__of_nothing_viable__has_no_score():
    assert report(["A.vy"], [])[1].split()[-2:] == ["0", "-"]


def test_listed__without_a_reason__is_refused(tmp_path):
    path = tmp_path / "list.toml"
    entry = '[[equivalent]]\nfile = "A.vy"\nfunction = "f"\nbefore = "a"\nafter = "b"\nreason = "{}"\n'
    path.write_text(entry.format("so"))
    with pytest.raises(ValueError, match="say why 'b' changes nothing"):
        listed(path)
    path.write_text(entry.format("both are never read"))
    assert listed(path) == {("A.vy", "f", "a", "b"): "both are never read"}


def test_listed__of_this_repository__names_mutants_that_there_are():
    from tests.mutation.plan import sources

    there = {name(case.mutant, case.source) for case in cases(sources())}
    assert set(listed()) - there == set()
