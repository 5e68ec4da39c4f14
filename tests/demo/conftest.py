"""One short demo that is kept up, as a user would run it, for all tests of this folder."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SESSIONS = 12
DEMO = [sys.executable, "-m", "counterfoil.demo"]


@dataclass(frozen=True)
class Demo:
    """What the demo printed, and the environment that it told its user to set."""

    home: Path
    output: str
    environment: dict
    api: str

    def _variables(self, **environment):
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**self.environment, "PATH": path, **environment}

    def run(self, command, **environment):
        """Run a command of the README's."""
        variables = self._variables(**environment)
        return subprocess.run(
            command,
            env=variables,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def start(self, command):
        """Start a command of the README's that goes on."""
        return subprocess.Popen(
            command, env=self._variables(), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )


@pytest.fixture(scope="package")
def demo(tmp_path_factory):
    home = tmp_path_factory.mktemp("demo") / "home"
    try:
        ran = subprocess.run(
            [*DEMO, "--sessions", str(SESSIONS), "--keep", "--home", str(home)],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=280,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
        told = dict(re.findall(r"(COUNTERFOIL_\w+)=(\S+)", ran.stdout))
        yield Demo(home, ran.stdout, told, re.search(r"API at (\S+?)\.\s", ran.stdout).group(1))
    finally:
        # Also where it failed: a demo that was kept goes on until it is stopped.
        stopped = subprocess.run(
            [*DEMO, "--stop", "--home", str(home)], cwd=ROOT, capture_output=True, text=True, check=False
        )
    ended = re.findall(r"earlier demo's (\S+)", stopped.stdout)
    assert (ended[0], ended[-2:]) == ("api", ["index", "chain"])
    assert sum(name.startswith("node-") for name in ended) == 11
    assert sum(name.startswith("service-") for name in ended) == 6
