"""Answers from an API over HTTP. Whatever it says may be hostile: bounded, of the right form, and to the question."""

import re
from collections.abc import Mapping
from typing import Final, NoReturn, TypeVar
from urllib.parse import urlencode

from counterfoil import answers
from counterfoil.asking.forms import FormError, problem_of, read
from counterfoil.asking.port import Draw, Rows, SessionsOf, not_there
from counterfoil.audit.model import By
from counterfoil.receipts import Policy, ReceiptError, digest, from_document, verify
from indexer.errors import (
    EmptyIndexError,
    IndexerError,
    QuestionError,
    StoreUnavailableError,
    UnknownBlockError,
    UserError,
)
from indexer.http import (
    BoundedHttp,
    EncodedError,
    HttpAnswer,
    HttpError,
    OutOfTimeError,
    TooLargeError,
    without_secrets,
)
from indexer.query import At

A = TypeVar("A", bound=answers.Answer)
T = TypeVar("T")

MAX_BYTES: Final = 16 * 2**20
"""The largest answer that is read."""
_SESSION: Final = re.compile(r"(0x)?[0-9a-f]{1,64}", re.IGNORECASE)
_MAX_DIGITS: Final = 18  # of a session's number; more are the start of an id
_REFUSED: Final = {
    "unknown-block": UnknownBlockError,
    "replaced-block": UnknownBlockError,
    "empty-index": EmptyIndexError,
    "bad-question": QuestionError,
    "bad-parameter": QuestionError,
    "too-long": QuestionError,
    "not-ready": StoreUnavailableError,
    "too-slow": StoreUnavailableError,
}
_NO_PATH: Final = {"http", "unknown-path"}


class RemoteError(UserError):
    """The API cannot be reached, or its answer cannot be used; the message names its host alone."""


class RemoteIndex:
    """Asks the API at a URL. See `Answers`."""

    def __init__(self, http: BoundedHttp, url: str) -> None:
        self._http = http
        self._url = url.rstrip("/")
        self._shown = without_secrets(url)

    # --- listings

    def services(self, category: str | None, *, routable: bool, rows: Rows) -> answers.ServicesAnswer:
        """List services by id."""
        asked = {"category": category, "routable": "true" if routable else None}
        return self._rows(answers.ServicesAnswer, "/services", rows, asked)

    def best(self, task: str, need: str, *, routable: bool, rows: Rows) -> answers.BestAnswer:
        """Rank services for a task and a need."""
        asked = {"task": task or None, "need": need or None, "routable": "true" if routable else None}
        return self._rows(answers.BestAnswer, "/services/best", rows, asked)

    def service(self, service_id: int, at: At) -> answers.ServiceAnswer:
        """Give one service."""
        found = self._as_of(answers.ServiceAnswer, f"/services/{service_id}", at, missing="service")
        self._expect(found["service"]["service_id"] == service_id)
        return found

    def experience(self, service_id: int, at: At) -> answers.ExperienceAnswer:
        """Give what is known of a service."""
        found = self._as_of(answers.ExperienceAnswer, f"/services/{service_id}/experience", at, missing="service")
        self._expect(found["service_id"] == service_id)
        return found

    # --- nodes and sessions

    def nodes(self, operator: str | None, rows: Rows) -> answers.NodesAnswer:
        """List nodes by id."""
        found = self._rows(answers.NodesAnswer, "/nodes", rows, {"operator": operator})
        self._expect(all(operator is None or row["operator"] == operator.lower() for row in found["nodes"]))
        return found

    def node(self, node_id: int, at: At) -> answers.NodeAnswer:
        """Give one node."""
        found = self._as_of(answers.NodeAnswer, f"/nodes/{node_id}", at, missing="node")
        self._expect(found["node"]["node_id"] == node_id)
        return found

    def sessions(self, of: SessionsOf, rows: Rows) -> answers.SessionsAnswer:
        """List sessions by number."""
        asked = {"client": of.client, "node": of.node_id, "service": of.service_id, "status": of.status}
        found = self._rows(answers.SessionsAnswer, "/sessions", rows, asked)
        self._expect(all(_is_of(row, of) for row in found["sessions"]))
        return found

    def session(self, which: str, at: At) -> answers.SessionAnswer:
        """Give one session."""
        found = self._as_of(answers.SessionAnswer, f"/sessions/{_session(which)}", at, missing="session")
        self._expect(_names(which, found["session"]["number"], found["session"]["session_id"]))
        return found

    # --- decisions

    def route(self, category: str, draw: Draw, at: At) -> answers.RouteAnswer:
        """Say what the lottery would choose: the draw is done again here, from the candidates of the answer."""
        asked = {"category": category, "client": draw.client, "cap": draw.cap, "nonce": draw.nonce}
        found = self._as_of(answers.RouteAnswer, "/route", at, asked)
        try:
            receipt = from_document(found["decision"])
        except ReceiptError as error:
            self._refuse(f"a decision that does not follow from its inputs ({error})")
        request, as_of = receipt.request, found["as_of"]
        nonce = request.nonce if draw.nonce is None else draw.nonce
        wanted = (category, draw.client.lower(), draw.cap, nonce, Policy.LOTTERY)
        self._expect(
            found["digest"] == digest(receipt)
            and (request.category, request.client, request.price_cap, request.nonce, request.policy) == wanted
            and (receipt.snapshot_block, receipt.snapshot_hash) == (as_of["block"], as_of["hash"])
        )
        return found

    def receipt(self, digest: str) -> bytes:
        """Give the canonical bytes of a receipt, checked against its digest."""
        answer = self._get(f"/receipts/{digest}", {})
        if answer.status != 200:
            raise self._refusal(answer, "receipt")
        try:
            verify(answer.body, digest)
        except ReceiptError as error:
            self._refuse(f"what is not the receipt of that digest ({error})")
        return answer.body

    def status(self) -> answers.IndexAnswer:
        """Say what the API's index is of and how far it is; the chain is not asked for its head."""
        empty: answers.IndexAnswer = {"database": self._shown, "head": None, "as_of": None, "status": None}
        try:
            found = self._ask(answers.StatusAnswer, "/status", {})
        except UnknownBlockError:
            return empty
        return {**empty, "as_of": found["as_of"], "status": found["status"]}

    def audit(self, session: str, by: By | None) -> answers.Audit:
        """Have the API replay the decision of a session, which is its word; it asks its index and receipts alone."""
        if by not in {None, "index"}:
            raise QuestionError(f"{self._name} replays by its index alone: say --by index, or leave out --api.")
        found = self._ask(answers.AuditAnswer, f"/audit/{_session(session)}", {}, missing="session")["audit"]
        self._expect(_names(session, None, found["session_id"]))
        return found

    # --- asking

    def _rows(self, form: type[A], path: str, rows: Rows, asked: Mapping[str, object] | None = None) -> A:
        return self._as_of(form, path, rows.at, {**(asked or {}), "after": rows.after, "limit": rows.limit})

    def _as_of(
        self, form: type[A], path: str, at: At, asked: Mapping[str, object] | None = None, missing: str = ""
    ) -> A:
        found = self._ask(form, path, {**(asked or {}), "at": at}, missing)
        self._expect(at in {None, found["as_of"]["block"], found["as_of"]["hash"]})
        return found

    def _ask(self, form: type[T], path: str, asked: Mapping[str, object], missing: str = "") -> T:
        answer = self._get(path, asked)
        if answer.status != 200:
            raise self._refusal(answer, missing)
        try:
            return read(answer, form)
        except FormError as error:
            self._refuse(str(error))

    def _get(self, path: str, asked: Mapping[str, object]) -> HttpAnswer:
        given = urlencode({name: value for name, value in asked.items() if value is not None})
        try:
            return self._http.request("GET", f"{self._url}{path}{'?' * bool(given)}{given}")
        except OutOfTimeError as error:
            raise RemoteError(f"{self._name} gave {error}: try again, or raise request_seconds.") from error
        except TooLargeError as error:
            raise RemoteError(f"{self._name} was not read, for {error}: ask for fewer rows with --limit.") from error
        except EncodedError as error:
            raise RemoteError(f"{self._name} was not read, for {error}: ask it without what stands between.") from error
        except HttpError as error:
            raise RemoteError(
                f"{self._name} does not answer ({error}): start it with `counterfoil serve`, or correct --api."
            ) from error

    @property
    def _name(self) -> str:
        return f"the API at {self._shown}"

    def _refusal(self, answer: HttpAnswer, missing: str) -> IndexerError:
        """Say what an answer that is no success means: the sentence that an index of one's own would give."""
        problem = problem_of(answer)
        if problem is None:
            return RemoteError(
                f"{self._name} answers with status {answer.status} and no reason: see that it is a Counterfoil API, "
                "and correct --api."
            )
        kind, detail = problem["type"], problem["detail"]
        if kind == "not-found":
            return _missing(missing, detail)
        if kind in _NO_PATH and answer.status == 404:
            return RemoteError(f"{self._name} does not know this question: correct --api, or ask an index of your own.")
        if kind in _REFUSED:
            return _REFUSED[kind](detail)
        return RemoteError(f"{self._name} failed (status {answer.status}, {detail}): try again, or tell who runs it.")

    def _refuse(self, what: str) -> NoReturn:
        raise RemoteError(
            f"{self._name} gave {what}: see that it is a Counterfoil API of this version, or correct --api."
        )

    def _expect(self, is_so: bool) -> None:
        if not is_so:
            self._refuse("an answer to another question")


def _missing(what: str, detail: str) -> UserError:
    if what == "receipt":
        return UserError(f"{detail}: ask the session's client for the file.")
    return not_there(what, detail) if what in {"service", "node", "session"} else QuestionError(detail)


def _session(which: str) -> str:
    if not _SESSION.fullmatch(which):
        raise QuestionError("A session is named by its number, or by 4 to 64 hex digits of its id: correct it.")
    return which


def _names(which: str, number: int | None, session_id: str) -> bool:
    """Whether a number, an id or the start of one is a session's; of an unknown number (None) that cannot be told."""
    if which.isdecimal() and len(which) <= _MAX_DIGITS:
        return number is None or int(which) == number
    return session_id.startswith("0x" + which.lower().removeprefix("0x"))


def _is_of(row: answers.Session, of: SessionsOf) -> bool:
    pairs = (
        (of.client and of.client.lower(), row["client"]),
        (of.node_id, row["node_id"]),
        (of.service_id, row["service_id"]),
        (of.status, row["status"]),
    )
    return all(wanted in (None, held) for wanted, held in pairs)
