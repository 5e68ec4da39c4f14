"""A private copy of the checkout in which one file at a time is wrong, so that nobody else sees the faults."""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from vyper.cli.vyper_compile import compile_files
from vyper.compiler.settings import Settings
from vyper.exceptions import VyperException, VyperInternalException

from tests.mutation.plan import ROOT

COPIED = (
    "contracts",
    "counterfoil",
    "indexer",
    "scripts",
    "tests",
    "pyproject.toml",
    "ape-config.yaml",
    ".ape",
    ".build",
)
LINKED = (".venv", "node_modules")
QUICK = (
    "-x", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-p", "tests.mutation.quick",
    "--hypothesis-seed=1",
)  # fmt: skip
# pytest's exit codes: tests failed, or could not be collected or run because the contracts do not deploy.
PASSED, FAILED = 0, (1, 2, 3)
_SUMMARY = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run of tests ended: `failed` names the test that stopped it, or says that time was up; else it is empty."""

    failed: str
    seconds: float
    output: str


class Tree:
    """The copy. `.venv` and node_modules are links."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.contracts = root / "contracts"
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__", "processes"))
            elif source.exists():
                shutil.copy(source, root / name)
        for name in LINKED:
            (root / name).symlink_to(ROOT / name)
        self._stamp = root / ".build" / "sources.sha256"
        if not self._stamp.exists() or self._stamp.read_text() != self._digest():
            shutil.rmtree(self._stamp.parent, ignore_errors=True)

    @contextmanager
    def changed(self, file: str, text: str) -> Iterator[None]:
        """One source as another text. What it is part of is compiled anew, then and afterwards, and nothing else."""
        source = self.contracts / file
        before = source.read_text()
        try:
            source.write_text(text)
            self._forget(file)
            yield
        finally:
            source.write_text(before)
            self._forget(file)

    def users(self, file: str) -> list[Path]:
        """The contracts whose code a file is part of: itself, or all that import the module, by another one too."""
        if not file.startswith("modules/"):
            return [self.contracts / file]
        name = Path(file).stem
        imports = re.compile(rf"^from \.+(?:modules)? import {name}$", re.MULTILINE)
        found: set[Path] = set()
        for path in self.contracts.rglob("*.vy"):
            if imports.search(path.read_text()):
                found.update(self.users(path.relative_to(self.contracts).as_posix()))
        return sorted(found)

    def code(self, file: str) -> dict[str, str] | None:
        """The code of a file's users; None where one does not compile."""
        try:
            # The compiler says which file it did not like.
            with redirect_stdout(StringIO()):
                return {path.name: self._compiled(path) for path in self.users(file)}
        except (VyperException, VyperInternalException):
            return None

    def run(self, targets: Sequence[str], seconds: float) -> Outcome:
        """Run tests until the first failure."""
        command = [sys.executable, "-m", "pytest", *QUICK, *targets]
        started = time.monotonic()
        with subprocess.Popen(
            command, cwd=self.root, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, start_new_session=True,
        ) as process:  # fmt: skip
            try:
                output, _ = process.communicate(timeout=seconds)
            except BaseException as error:
                # The session was started for this run: its group is pytest and the chains that pytest started.
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                return Outcome("time was up", time.monotonic() - started, output)
        return Outcome(_failed(process.returncode, output), time.monotonic() - started, output)

    @cached_property
    def _environment(self) -> dict[str, str]:
        settings = {
            "APE_DATA_FOLDER": str(self.root / ".ape"),
            "COUNTERFOIL_PROFILE": "dev",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return os.environ | settings

    def _compiled(self, path: Path) -> str:
        settings = Settings(evm_version="cancun")
        outputs = compile_files([path], ["bytecode", "bytecode_runtime"], paths=[self.root], settings=settings)
        code = dict(outputs[path])
        deployed = str(code["bytecode"])
        # Its last two bytes are the length of metadata that holds a digest of the sources.
        metadata = int(deployed[-4:], 16)
        return deployed[: -2 * metadata] + str(code["bytecode_runtime"])

    def _forget(self, file: str) -> None:
        """Take the code that a file is part of from what Ape has compiled, and say that the rest is up to date.

        Ape compiles all that is missing at once. Of files that changed it compiles the first one asked for, and takes
        the others for compiled with it; and it knows nothing of imports.
        """
        compiled = self._stamp.with_name("__local__.json")
        if compiled.exists():
            manifest = json.loads(compiled.read_text())
            for path in self.users(file):
                manifest["contractTypes"].pop(path.stem, None)
            compiled.write_text(json.dumps(manifest))
        self._stamp.parent.mkdir(exist_ok=True)
        self._stamp.write_text(self._digest())

    def _digest(self) -> str:
        """The digest of the sources as the fixtures form it."""
        path = self.root / "tests" / "contracts" / "conftest.py"
        spec = importlib.util.spec_from_file_location("mutated_conftest", path)
        if spec is None or spec.loader is None:
            raise RuntimeError(f"{path} cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return str(module.sources_digest())


def _failed(code: int, output: str) -> str:
    if code == PASSED:
        return ""
    if code not in FAILED:
        raise RuntimeError(f"pytest ended with {code} instead of running tests:\n{output[-2000:]}")
    found = _SUMMARY.search(output)
    return found.group(1) if found else "pytest itself"


@contextmanager
def private_tree() -> Iterator[Tree]:
    """A copy that is gone afterwards."""
    with TemporaryDirectory(prefix="counterfoil-mutation-") as folder:
        yield Tree(Path(folder))
