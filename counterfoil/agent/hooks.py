"""A judge of the user's own: a command or a URL that is told of an answer and gives it 0 to 100.

Whatever goes wrong here is the agent's own fault and not the node's.
"""

import json
import os
import re
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import IO, Any, Final

from counterfoil.agent.checks import Checks
from counterfoil.routing.experience import rounded
from indexer.http import BoundedHttp, HttpError
from indexer.settings import PREFIX

HOOK_SECONDS: Final = 30.0
MAX_OUTPUT: Final = 4096
"""The most bytes that a hook may answer."""
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.[0-9]{1,20})?")
_FULL_SCORE = 100


class HookError(Exception):
    """A hook without a score; the message says why, without a full stop, and holds nothing of what it said."""


def ask(checks: Checks, document: bytes, *, seconds: float = HOOK_SECONDS) -> int:
    """Have the hook that the checks name score what `document` (JSON) describes. Raises HookError."""
    said = _post(checks.url, document, seconds) if checks.url else _run(checks.command, document, seconds)
    return _score(said)


def _score(said: bytes) -> int:
    """Read a bare number or `{"score": n}`, to the nearest whole one."""
    try:
        found: Any = json.loads(said, parse_int=_number, parse_float=_number, parse_constant=_number)
    except (ValueError, RecursionError):
        found = None
    score = found.get("score") if isinstance(found, dict) else found
    if not isinstance(score, Fraction) or score > _FULL_SCORE:
        raise HookError('it gave no number from 0 to 100, bare or as {"score": n}')
    return rounded(score)


def _number(text: str) -> Fraction:
    if not _NUMBER.fullmatch(text):
        raise ValueError("no number from 0 to 100")
    return Fraction(text)


# --- a command


def _run(command: Sequence[str], document: bytes, seconds: float) -> bytes:
    deadline = time.monotonic() + seconds
    try:
        with tempfile.TemporaryFile() as told:  # not a pipe, which would fill up where the command does not read
            told.write(document)
            told.seek(0)
            process = subprocess.Popen(  # noqa: S603 -- it is the user's own command, and no shell reads it
                command, stdin=told, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment(),
                start_new_session=True,
            )  # fmt: skip
    except OSError as error:
        raise HookError(f"it cannot be started ({error.strerror})") from error
    with process:
        try:
            said = _read(process.stdout, deadline)
            code = process.wait(max(0.0, deadline - time.monotonic()))
        except (TimeoutError, subprocess.TimeoutExpired):
            raise HookError(f"it took over {seconds:g} s") from None
        finally:
            _end(process)
    if code != 0:
        raise HookError(f"it ended with {code}")
    return said


def _environment() -> dict[str, str]:
    """Leave out every variable of ours: the keystore's password and the private key stand among them."""
    return {name: value for name, value in os.environ.items() if not name.upper().startswith(PREFIX)}


def _read(pipe: IO[bytes] | None, deadline: float) -> bytes:
    """Read to the end. Raises TimeoutError, and HookError for too much."""
    said = bytearray()
    with selectors.DefaultSelector() as waiting:
        waiting.register(pipe, selectors.EVENT_READ)  # type: ignore[arg-type]
        while len(said) <= MAX_OUTPUT:
            if not waiting.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            piece = os.read(pipe.fileno(), MAX_OUTPUT)  # type: ignore[union-attr]
            if not piece:
                return bytes(said)
            said += piece
    raise HookError(f"it wrote over {MAX_OUTPUT} bytes")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what has not been seen to end, with all that it started: until then its group's id is nobody else's."""
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)


# --- a URL


def _post(url: str, document: bytes, seconds: float) -> bytes:
    try:
        with BoundedHttp(seconds=seconds, max_bytes=MAX_OUTPUT) as http:
            answer = http.request("POST", url, content=document, headers={"Content-Type": "application/json"})
    except HttpError as error:
        raise HookError(str(error)) from error
    if not 200 <= answer.status < 300:
        raise HookError(f"it answered {answer.status}")
    return answer.body
