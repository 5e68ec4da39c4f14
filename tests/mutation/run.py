"""Runs mutants against the tests, and says how they fared."""

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tests.mutation.equivalents import Named, name
from tests.mutation.mutator import Mutant, Mutator
from tests.mutation.plan import TESTS
from tests.mutation.results import EQUIVALENT, KILLED, NOT_VIABLE, SAME_CODE, SURVIVED, Result, Results
from tests.mutation.tree import Tree

# A mutant may loop; a machine may be busy.
SLOWER, GRACE_SECONDS = 4, 60
BASELINE_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Case:
    """A mutant with the source it is of."""

    mutant: Mutant
    source: str

    @property
    def key(self) -> str:
        """What names it in the results."""
        return self.mutant.key(self.source)

    def result(self, status: str, by: str = "", seconds: float = 0) -> Result:
        """What is kept of how it fared."""
        mutant = self.mutant
        patch = mutant.diff(self.source)
        return Result(self.key, mutant.file, mutant.line, mutant.kind, status, by, round(seconds, 1), patch)


def cases(sources: dict[str, str]) -> list[Case]:
    """Every mutant of every source, in a fixed order."""
    return [Case(mutant, text) for file, text in sources.items() for mutant in Mutator(file, text).mutants()]


def sampled(among: Sequence[Case], size: int, seed: int) -> list[Case]:
    """A sample that is the same for the same sources, size and seed, in the order of the sources."""
    chosen = random.Random(seed).sample(range(len(among)), min(size, len(among)))
    return [among[position] for position in sorted(chosen)]


class Baseline:
    """The tests of each file that pass without a fault, and how long they take."""

    def __init__(self, tree: Tree, path: Path, say: Callable[[str], None]) -> None:
        self.tree = tree
        self.path = path
        self.say = say
        self._known: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}
        self._digest = _digest(tree.root)

    def targets(self, file: str) -> tuple[list[str], float]:
        """The targets that pass, and the time limit of all of them together."""
        known = {target: self._seconds(target) for target in TESTS[file]}
        passing = [target for target, seconds in known.items() if seconds >= 0]
        if not passing:
            raise RuntimeError(f"no tests of {file} pass without a fault; mend them first")
        return passing, SLOWER * sum(known[target] for target in passing) + GRACE_SECONDS

    def _seconds(self, target: str) -> float:
        """How long a target takes; below 0 where it fails."""
        key = f"{self._digest} {target}"
        if key not in self._known:
            outcome = self.tree.run([target], BASELINE_SECONDS)
            self._known[key] = -1 if outcome.failed else outcome.seconds
            fares = f"FAILS WITHOUT A FAULT at {outcome.failed} and is left out" if outcome.failed else "passes"
            self.say(f"{target} {fares} ({outcome.seconds:.0f} s)")
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self._known))
        return self._known[key]


def _digest(root: Path) -> str:
    """The digest of the contracts and their tests."""
    paths = [*(root / "contracts").rglob("*.vy*"), *(root / "tests" / "contracts").rglob("*.py")]
    content = b"".join(str(path.relative_to(root)).encode() + path.read_bytes() for path in sorted(paths))
    return sha256(content).hexdigest()[:16]


class Runner:
    """Tries mutants one after the other and keeps each result at once."""

    def __init__(self, tree: Tree, baseline: Baseline, results: Results, equivalents: dict[Named, str]) -> None:
        self.tree = tree
        self.baseline = baseline
        self.results = results
        self.equivalents = equivalents
        self._code: dict[str, dict[str, str] | None] = {}

    def run(self, chosen: Sequence[Case], *, again: bool, say: Callable[[str], None]) -> None:
        """Try all that are not known yet, and survivors too where `again` is set."""
        for number, case in enumerate(chosen, 1):
            if self._is_settled(case, again):
                continue
            result = self._try(case)
            self.results.add(result)
            where = f"{result.file}:{result.line} {result.kind}"
            say(f"[{number}/{len(chosen)}] {where}: {result.status} ({result.seconds:.0f} s) {result.by}")

    def _is_settled(self, case: Case, again: bool) -> bool:
        """Whether nothing new can be learnt of a case."""
        known = self.results.get(case.key)
        if known is None or (again and known.status == SURVIVED):
            return False
        return known.status == EQUIVALENT or name(case.mutant, case.source) not in self.equivalents

    def _try(self, case: Case) -> Result:
        if name(case.mutant, case.source) in self.equivalents:
            return case.result(EQUIVALENT, self.equivalents[name(case.mutant, case.source)])
        file = case.mutant.file
        if file not in self._code:
            self._code[file] = self.tree.code(file)
        targets, limit = self.baseline.targets(file)
        started = time.monotonic()
        with self.tree.changed(file, case.mutant.apply(case.source)):
            code = self.tree.code(file)
            if code is None:
                return case.result(NOT_VIABLE, seconds=time.monotonic() - started)
            if code == self._code[file]:
                return case.result(SAME_CODE, seconds=time.monotonic() - started)
            outcome = self.tree.run(targets, limit)
        return case.result(KILLED if outcome.failed else SURVIVED, outcome.failed, time.monotonic() - started)


def report(files: Iterable[str], results: Sequence[Result]) -> list[str]:
    """A table by file, and every survivor."""
    head = f"{'file':24}{'tried':>7}{'not viable':>12}{'same code':>11}{'equivalent':>12}"
    lines = [head + f"{'viable':>8}{'killed':>8}{'score':>8}"]
    counts = {file: Counter(result.status for result in results if result.file == file) for file in files}
    total = sum(counts.values(), Counter())
    for label, count in (*counts.items(), ("all", total)):
        viable = count[KILLED] + count[SURVIVED]
        score = f"{count[KILLED] * 100 / viable:.1f}%" if viable else "-"
        cells = f"{count.total():7}{count[NOT_VIABLE]:12}{count[SAME_CODE]:11}{count[EQUIVALENT]:12}"
        lines.append(f"{label:24}{cells}{viable:8}{count[KILLED]:8}{score:>8}")
    for result in results:
        if result.status == SURVIVED:
            lines += ["", f"survived: contracts/{result.file}:{result.line} ({result.kind})", result.diff.rstrip()]
    return lines
