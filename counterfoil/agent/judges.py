"""Whether an answer is what was asked for: built-in checks, then the user's own hook. Rules in docs/agent-rules.md.

Everything in an answer is hostile: each check is bounded in time, and no reason repeats what an answer says, but for
what the decoding of its form made of it, printable and cut.
"""

import base64
import json
from dataclasses import dataclass
from typing import Any, Final

import regex

from counterfoil.agent.checks import Checks
from counterfoil.agent.forms import CallAnswer, CallRequest
from counterfoil.agent.hooks import HOOK_SECONDS, HookError, ask
from counterfoil.agent.schema import misfit
from counterfoil.texts import printable

__all__ = ["MAX_REASON", "Checks", "Verdict", "judge"]

MAX_REASON: Final = 160
"""The most bytes of a reason, as of a record's message."""
PATTERN_SECONDS: Final = 1.0
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a call worked, the hook's score of 0 to 100 (None without one), and why, in a sentence."""

    worked: bool
    score: int | None
    reason: str


def judge(
    checks: Checks,
    request: CallRequest,
    answer: CallAnswer,
    output: object,
    latency_ms: int,
    *,
    failure: str | None = None,
    hook_seconds: float = HOOK_SECONDS,
) -> Verdict:
    """Judge one answer. `output` is what its form decoded, `failure` why it did not decode, such as an error under 200.

    The first check that fails decides. A hook is asked only about what passed them all; one that gives no score leaves
    the call as worked and unscored.
    """
    problem = _problem(checks, answer, output, latency_ms, failure)
    if problem:
        return Verdict(worked=False, score=None, reason=_sentence(problem))
    if not (checks.command or checks.url):
        return Verdict(worked=True, score=None, reason="Every check passed.")
    try:
        score = ask(checks, _document(request, answer, output, latency_ms), seconds=hook_seconds)
    except (ValueError, TypeError, RecursionError):
        return Verdict(worked=False, score=None, reason=_sentence("the output is no JSON value"))
    except HookError as error:
        return Verdict(worked=True, score=None, reason=_sentence(f"the judge gave no score, our own fault: {error}"))
    return Verdict(worked=True, score=score, reason=f"The judge gave {score}/100.")


def _problem(checks: Checks, answer: CallAnswer, output: object, latency_ms: int, failure: str | None) -> str | None:
    """Say what is wrong with an answer, the cheapest check first."""
    if not _is_success(checks, answer.status):
        wanted = ", ".join(map(str, checks.status)) or "200 to 299"
        return f"the status is {answer.status}, which is not of {wanted}"
    if failure is not None:
        return failure or "the answer cannot be read"
    if checks.within_ms is not None and latency_ms > checks.within_ms:
        return f"the answer took {latency_ms} ms, longer than {checks.within_ms} ms"
    if checks.matches is not None and (problem := _mismatch(checks.matches, answer.body)):
        return problem
    return None if checks.json_schema is None else misfit(checks.json_schema, output)


def _is_success(checks: Checks, status: int) -> bool:
    return status in checks.status if checks.status else 200 <= status < 300


def _mismatch(pattern: str, body: bytes) -> str | None:
    shown = f"{pattern[:_SHOWN]!r}"
    try:
        found = regex.search(pattern, body.decode("utf-8", "replace"), timeout=PATTERN_SECONDS)
    except TimeoutError:
        return f"the body cannot be held against {shown} within {PATTERN_SECONDS:g} s"
    return None if found else f"the body does not match {shown}"


def _document(request: CallRequest, answer: CallAnswer, output: object, latency_ms: int) -> bytes:
    """What a hook is told, as JSON. Raises ValueError, TypeError or RecursionError for an output that is none."""
    told = {
        "request": {
            "method": request.method, "path": request.path, "headers": dict(request.headers), **_body(request.body),
        },
        "answer": {"status": answer.status, "content_type": answer.content_type, **_body(answer.body)},
        "output": output,
        "latency_ms": latency_ms,
    }  # fmt: skip
    return json.dumps(told, allow_nan=False).encode()


def _body(body: bytes) -> dict[str, Any]:
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def _sentence(text: str) -> str:
    """Make of a text one printable sentence of at most MAX_REASON bytes."""
    plain = printable(text[:MAX_REASON]).rstrip(" .")
    cut = plain.encode()[: MAX_REASON - 1].decode(errors="ignore")
    return f"{cut[:1].upper()}{cut[1:]}."
