"""A workflow file: steps that one run pays for, one after the other. Rules in docs/agent-rules.md.

What is wrong with a file is said when it is read, all of it at once and each with its place, before anything is paid.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import rfc8785
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer, ValidationError, model_validator
from pydantic_core import ErrorDetails

from counterfoil.agent import strict_yaml
from counterfoil.agent.checks import Checks, Json
from counterfoil.agent.notes import Label
from counterfoil.agent.references import BadReferenceError, references, resolve
from indexer.errors import UserError
from indexer.keccak import keccak

__all__ = ["MAX_CALLS", "MAX_STEPS", "Step", "Workflow", "WorkflowError", "dump", "load", "pinned", "read", "resolve"]

MAX_STEPS: Final = 64
MAX_CALLS: Final = 100
_MAX_AMOUNT = 2**128 - 1
_MAX_MISTAKES = 10
_MAX_PATH = 512
_SHOWN = 80
_WORDS = {
    "extra_forbidden": "is no field: correct its name, or take it out",
    "missing": "is missing: add it",
}


class WorkflowError(UserError):
    """A workflow that cannot be run as it is; the message names the places and the remedies."""


def _is_below(path: str) -> str:
    if path and not (path.startswith("/") and path.isascii() and path.isprintable()):
        raise ValueError("is no path: begin it with / and write it in printable ASCII")
    if " " in path or "#" in path or ".." in path.partition("?")[0].split("/"):
        raise ValueError("holds a space, a # or a way up (..): take it out")
    return path


# An amount can pass 2^53, so that it is a text in JSON (docs/specification.md); in the file it is a number.
_AS_TEXT = PlainSerializer(str, when_used="json-unless-none")
Amount = Annotated[int, Field(ge=0, le=_MAX_AMOUNT), _AS_TEXT]
ServiceId = Annotated[int, Field(ge=1, le=_MAX_AMOUNT), _AS_TEXT]


class Step(BaseModel):
    """One paid step. Amounts are base units of the payment token.

    `max_price_per_call` is a soft cap, which the lottery relaxes where it would drop everyone; `budget` bounds the
    step's deposit and is hard. `service_id` is a pin and comes before everything else that says where to go.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    category: Annotated[str, Field(max_length=64, pattern=r"^([a-z0-9][a-z0-9.:-]*)?$")] = ""
    need: Label = ""
    task: Label = ""
    input: Json = None
    calls: Annotated[int, Field(ge=1, le=MAX_CALLS)] = 1
    max_price_per_call: Amount | None = None
    budget: Amount | None = None
    service_id: ServiceId | None = None
    try_both: bool = False
    judge: Checks | None = None
    form: Literal["json", "mcp", "chat"] | None = None
    path: Annotated[str, Field(max_length=_MAX_PATH), AfterValidator(_is_below)] = ""
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    tool: Label = ""

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if not (self.category or self.task or self.need or self.service_id):
            raise ValueError("names no category, task, need or service_id: give one, so that a service can be found")
        return self

    def tool_of(self, category: str) -> str:
        """Give the tool that the experience record is about: the step's own, else the last part of the category."""
        return self.tool or category.rpartition(":")[2]


class Workflow(BaseModel):
    """The steps of one run, in their order, and `budget`, the base units that the whole run may take."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Annotated[Label, Field(min_length=1)]
    budget: Amount | None = None
    steps: Annotated[tuple[Step, ...], Field(strict=False, max_length=MAX_STEPS)]

    @model_validator(mode="after")
    def _is_in_order(self) -> Self:
        if not self.steps:
            raise ValueError("there are no steps: add one under `steps:`")
        known = [step.id for step in self.steps]
        wrong = [problem for place, step in enumerate(self.steps) for problem in _misplaced(step, place, known)]
        if wrong:
            raise ValueError("; ".join(wrong[:_MAX_MISTAKES]))
        return self

    @property
    def digest(self) -> str:
        """keccak256 of the workflow as canonical JSON without what is at its default, as 0x and 64 digits."""
        data: bytes = rfc8785.dumps(self.model_dump(mode="json", exclude_defaults=True))
        return "0x" + keccak(data).hex()


def _misplaced(step: Step, place: int, known: list[str]) -> list[str]:
    """Say what is wrong with a step among the others: its name, and what it refers to."""
    where = f"step {place + 1} ({step.id})"
    wrong = [f"{where}, id: another step has this id: rename one"] if step.id in known[:place] else []
    try:
        named = {path: path.partition(".")[0] for path in references(step.input)}
    except BadReferenceError as error:
        return [*wrong, f"{where}, input: {error}".rstrip(".")]
    for path, other in named.items():
        if other not in known:
            wrong.append(f"{where}, input: ${{{path}}} names no step: the steps are {_listed(known)}")
        elif other not in known[:place]:
            wrong.append(f"{where}, input: ${{{path}}} is not an earlier step: refer to one that is done before")
    return wrong


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_MAX_MISTAKES]) + (", ..." if len(names) > _MAX_MISTAKES else "")


def load(path: Path) -> Workflow:
    """Read a workflow file. Raises WorkflowError."""
    try:
        with path.open("rb") as file:
            data = file.read(strict_yaml.MAX_BYTES + 1)
    except OSError as error:
        raise WorkflowError(f"The workflow {path} cannot be read ({error.strerror}): check the path.") from error
    return read(data, str(path))


def read(data: bytes, where: str) -> Workflow:
    """Read a workflow out of a file's bytes; `where` names the file in errors. Raises WorkflowError."""
    try:
        document = strict_yaml.read(data)
    except strict_yaml.YamlError as error:
        raise WorkflowError(f"The workflow {where} cannot be read: {error}.") from error
    if not isinstance(document, dict):
        raise WorkflowError(f"The workflow {where} is no mapping: begin it with `name:` and `steps:`.")
    return _validated(document, where)


def pinned(workflow: Workflow, services: Mapping[str, int]) -> Workflow:
    """Give the workflow with steps pinned to services, by step id. Raises WorkflowError for what is no step."""
    known = [step.id for step in workflow.steps]
    for step_id in services:
        if step_id not in known:
            raise WorkflowError(f"{step_id[:_SHOWN]!r} is no step of {workflow.name}: the steps are {_listed(known)}.")
    document = workflow.model_dump(exclude_defaults=True)
    for step in document["steps"]:
        if step["id"] in services:
            step["service_id"] = services[step["id"]]
    return _validated(document, workflow.name)


def dump(workflow: Workflow) -> str:
    """Write a workflow as YAML that `read` gives back. Raises WorkflowError where it would be too large to read."""
    try:
        return strict_yaml.dump(_as_lists(workflow.model_dump(exclude_defaults=True)))
    except strict_yaml.YamlError as error:
        raise WorkflowError(f"The workflow {workflow.name} cannot be written: {error}.") from error


def _as_lists(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {key: _as_lists(below) for key, below in value.items()}
    return [_as_lists(below) for below in value] if isinstance(value, list | tuple) else value


# --- mistakes


def _validated(document: dict[str, Any], where: str) -> Workflow:
    try:
        return Workflow.model_validate(document)
    except ValidationError as error:
        mistakes = [_mistake(document, found) for found in error.errors(include_url=False)]
        left = len(mistakes) - _MAX_MISTAKES
        more = f"; and {left} more" if left > 0 else ""
        raise WorkflowError(f"Correct the workflow {where}: {'; '.join(mistakes[:_MAX_MISTAKES])}{more}.") from None


def _mistake(document: dict[str, Any], found: ErrorDetails) -> str:
    said = _WORDS.get(found["type"]) or found["msg"].removeprefix("Value error, ").removesuffix(".")
    return f"{_place(document, found['loc'])}: {said}" if found["loc"] else said


def _place(document: dict[str, Any], loc: tuple[int | str, ...]) -> str:
    """Name a place as people do: `step 2 (brief), judge.within_ms`."""
    step, fields = "", loc
    if len(loc) > 1 and loc[0] == "steps" and isinstance(loc[1], int):
        step_id = _id_at(document, loc[1])
        step, fields = f"step {loc[1] + 1}" + (f" ({step_id})" if step_id else ""), loc[2:]
    return ", ".join(part for part in (step, ".".join(_printable(str(field)) for field in fields)) if part)


def _id_at(document: dict[str, Any], place: int) -> str:
    try:
        step_id = document["steps"][place]["id"]
    except (LookupError, TypeError):
        return ""
    return _printable(step_id) if isinstance(step_id, str) else ""


def _printable(text: str) -> str:
    return text[:_SHOWN] if text.isprintable() else repr(text[:_SHOWN])
