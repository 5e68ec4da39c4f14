"""docs/agent-rules.md says what the modules do."""

import re
from pathlib import Path

import pytest

from counterfoil.agent import checks, hooks, judges, memory, rating, references, schema, strict_yaml, workflow
from counterfoil.agent.checks import Checks
from counterfoil.agent.rating import CallResult, rate
from counterfoil.agent.workflow import Step, read

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "agent-rules.md").read_text()
FLAT = " ".join(DOCUMENT.split())


def rows(heading):
    """The rows of the first table under a heading, cell by cell."""
    section = DOCUMENT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_rules__of_a_step__name_every_field_of_it():
    assert [name.strip("`") for name, _ in rows("Workflow files")] == list(Step.model_fields)


def test_rules__of_judging__name_every_check_and_hook():
    named = {name.strip("`") for name, _ in rows("Judging an answer")} - {"always"}
    assert named | {"command", "url"} == set(Checks.model_fields)
    assert all(f"`{name}`" in FLAT for name in (*Checks.model_fields, *checks.UNBOUNDED))


def test_rules__of_their_example__are_a_workflow():
    (example,) = re.findall(r"^```yaml\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert [step.id for step in read(example.encode(), "example").steps] == ["price", "brief"]


@pytest.mark.parametrize(
    "said",
    [
        f"1 to {workflow.MAX_STEPS} `steps`",
        f"1 to {workflow.MAX_CALLS}, 1 without it",
        f"at most {references.MAX_RESOLVED} bytes",
        f"at most {strict_yaml.MAX_BYTES} bytes, at most {strict_yaml.MAX_DEPTH} levels",
        f"at most {checks.MAX_PATTERN} characters",
        f"or {judges.PATTERN_SECONDS:g} s does not suffice",
        f"or {schema.SECONDS:g} s do not suffice",
        f"has {hooks.HOOK_SECONDS:g} s and {hooks.MAX_OUTPUT} bytes",
        f"min({rating.MAX_SLOWNESS}, floor({rating.MAX_SLOWNESS} * (median - category) / (3 * category)))",
        f"at most {rating.MAX_REASON} bytes together",
        f"beyond {memory.MAX_ROWS} the oldest go",
    ],
)
def test_rules__of_a_bound__are_what_the_code_keeps(said):
    assert said in FLAT


@pytest.mark.parametrize("row", rows("Rating a session"), ids=" ".join)
def test_rules__of_each_worked_example__give_its_score(row):
    worked, counted, mean, median, category, score = (None if cell == "-" else int(cell) for cell in row)
    calls = [CallResult(True, median, mean)] * worked + [CallResult(False, 1)] * (counted - worked)
    assert rate(calls, category).score == score
