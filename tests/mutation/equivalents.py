"""The mutants that no test can kill, each with the reason: equivalents.toml."""

import tomllib
from pathlib import Path

from tests.mutation.mutator import Mutant

LIST = Path(__file__).parent / "equivalents.toml"
Named = tuple[str, str, str, str]


def listed(path: Path = LIST) -> dict[Named, str]:
    """The reason by file, function, and the line before and after. Raises ValueError for one without a reason."""
    found: dict[Named, str] = {}
    for entry in tomllib.loads(path.read_text()).get("equivalent", []):
        if len(entry["reason"].split()) < 3:
            raise ValueError(f"say why {entry['after']!r} changes nothing that can be seen")
        found[entry["file"], entry["function"], entry["before"], entry["after"]] = entry["reason"]
    return found


def name(mutant: Mutant, source: str) -> Named:
    """How the list names a mutant."""
    return (mutant.file, mutant.function, *mutant.lines(source))
