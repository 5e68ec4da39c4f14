"""A pytest plugin: `pytest -p tests.contracts.coverage.plugin` prints the coverage of the contracts by the boa tests.

It fails the run where a statement or a branch of a contract or module was not run and `unreached.txt` does not say why,
and where `unreached.txt` speaks of one that was.
"""

import io
import re

import pytest
from boa.environment import Env
from coverage import Coverage
from coverage.data import CoverageData

from tests.contracts.conftest import ROOT
from tests.contracts.coverage.recorder import Recorder

UNREACHED = ROOT / "tests" / "contracts" / "coverage" / "unreached.txt"
DATA = ROOT / ".build" / "coverage-contracts"
ENTRY = re.compile(r"^(\S+\.vy): (\d+)(?:->(\d+))? \| (\S.*) \| (\S.*)$")
RECORDER = Recorder()


def sources():
    """The contracts and modules that are deployed: no test contracts."""
    return sorted([*(ROOT / "contracts").glob("*.vy"), *(ROOT / "contracts" / "modules").glob("*.vy")])


def pytest_configure():
    """Let boa show every trace, before the first contract is deployed."""
    Env._coverage_enabled = True
    Env._trace_computation = lambda _env, computation, contract=None: RECORDER.record(computation, contract)


def measured():
    """The report of what was recorded, by coverage.py and with boa's idea of lines and branches."""
    DATA.parent.mkdir(exist_ok=True)
    DATA.unlink(missing_ok=True)
    data = CoverageData(basename=str(DATA))
    data.add_arcs(RECORDER.arcs([str(path) for path in sources()]))
    data.add_file_tracers({str(path): "boa.coverage.TitanoboaPlugin" for path in sources()})
    data.write()
    coverage = Coverage(data_file=str(DATA), branch=True, config_file=False)
    coverage.set_option("run:plugins", ["boa.coverage"])
    coverage.load()
    return coverage


def missing_of(coverage, path):
    """The lines and branches of a source that nothing ran: `12` and `12->14`."""
    analysis = coverage._analyze(str(path))
    lines = {str(line) for line in analysis.missing}
    branches = {f"{line}->{to}" for line, targets in analysis.missing_branch_arcs().items() for to in targets}
    return lines | {branch for branch in branches if branch.split("->")[0] not in lines}


def explained():
    """What `unreached.txt` explains, by source: each place with the text of its line, so that it cannot go stale."""
    found = {}
    for entry in UNREACHED.read_text().splitlines():
        if entry and not entry.startswith("#"):
            match = ENTRY.match(entry)
            assert match, f"{UNREACHED.name}: this line is not 'source: place | text of the line | reason': {entry}"
            source, line, to, text, _reason = match.groups()
            assert (ROOT / "contracts" / source).read_text().splitlines()[int(line) - 1].strip() == text.strip(), entry
            found.setdefault(source, set()).add(f"{line}->{to}" if to else line)
    return found


def faults(coverage):
    """What was not run and is not explained, and what is explained although it was run."""
    reasons = explained()
    for path in sources():
        name = str(path.relative_to(ROOT / "contracts"))
        missing, known = missing_of(coverage, path), reasons.get(name, set())
        lines = path.read_text().splitlines()
        for place in sorted(missing - known):
            yield f"{name}: {place} was not run: {lines[int(place.split('->')[0]) - 1].strip()}"
        for place in sorted(known - missing):
            yield f"{name}: {place} was run, so {UNREACHED.name} need not explain it"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Compare, and fail a run that would have passed."""
    coverage = measured()
    table = io.StringIO()
    coverage.report(file=table, show_missing=True, skip_empty=True)
    session.config.contract_table = table.getvalue().replace(str(ROOT) + "/", "")
    session.config.contract_faults = list(faults(coverage))
    if session.config.contract_faults and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    """Print the table and what is wrong with it."""
    terminalreporter.section("coverage of the contracts: statements and branches")
    terminalreporter.write_line(config.contract_table)
    for fault in config.contract_faults:
        terminalreporter.write_line(fault, red=True)
