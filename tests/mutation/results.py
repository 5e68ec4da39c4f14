"""What is known of each mutant, kept as it is learnt, so that a run goes on where one stopped."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

KILLED = "killed"
SURVIVED = "survived"
NOT_VIABLE = "not viable"
SAME_CODE = "same code"
EQUIVALENT = "equivalent"


@dataclass(frozen=True, slots=True)
class Result:
    """How one mutant fared; `by` is the test that killed it."""

    key: str
    file: str
    line: int
    kind: str
    status: str
    by: str
    seconds: float
    diff: str


class Results:
    """A file with one result a line; a later one of the same key counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = {result.key: result for result in self._read()}

    def get(self, key: str) -> Result | None:
        """What is known of a mutant."""
        return self._known.get(key)

    def add(self, result: Result) -> None:
        """Keep a result."""
        self._known[result.key] = result
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")

    def among(self, keys: Iterable[str]) -> list[Result]:
        """The results of these mutants, as far as known."""
        return [self._known[key] for key in keys if key in self._known]

    def _read(self) -> list[Result]:
        if not self.path.exists():
            return []
        # A run that was killed may have left half a line at the end.
        whole = self.path.read_text().rpartition("\n")[0].splitlines()
        return [Result(**json.loads(line)) for line in whole if line]
