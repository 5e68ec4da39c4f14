"""What an agent says of a tool while it works: kept until the record of its session is signed (ledger rule EL-9)."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from counterfoil.files import write_whole
from indexer.errors import UserError
from indexer.keccak import keccak

_SESSION = re.compile(r"0x[0-9a-f]{64}")
_MAX_FILE_BYTES = 8192


def _at_most(limit: int) -> AfterValidator:
    def check(text: str) -> str:
        if len(text.encode("utf-8", "surrogatepass")) > limit:
            raise ValueError(f"is longer than {limit} bytes: shorten it")
        if not text.isprintable():
            raise ValueError("holds a letter that cannot be printed, such as a line end: leave it away")
        return text

    return AfterValidator(check)


Label = Annotated[str, _at_most(64)]


class ToolNote(BaseModel):
    """Need, task label and a line about a tool that a session paid for. Empty texts say nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    session_id: str = ""
    tool: Label
    need: Label = ""
    task: Label = ""
    note: Annotated[str, _at_most(280)] = ""


class NoteBook:
    """Notes as files, one per session and tool; the last one written counts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, note: ToolNote) -> Path:
        """Keep a note in the place of an earlier one. Raises UserError for a malformed session or tool."""
        path = self._path(note.session_id, note.tool)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, note.model_dump_json().encode())
        except OSError as error:
            raise UserError(
                f"The note cannot be written to {self._folder} ({error.strerror}): make it writable."
            ) from error
        return path

    def find(self, session_id: str, tool: str) -> ToolNote | None:
        """Give the note about a tool, None where there is none. Raises UserError for a file that is damaged."""
        path = self._path(session_id, tool)
        if not path.is_file():
            return None
        try:
            with path.open("rb") as file:
                note = ToolNote.model_validate_json(file.read(_MAX_FILE_BYTES))
        except (OSError, ValidationError) as error:
            raise UserError(
                f"The note {path} cannot be read ({type(error).__name__}): correct or remove it."
            ) from error
        if (note.session_id, note.tool) != (session_id, tool):
            raise UserError(f"The note {path} is of another session or tool: remove it.")
        return note

    def _path(self, session_id: str, tool: str) -> Path:
        if not _SESSION.fullmatch(session_id):
            raise UserError(f"{session_id[:80]!r} is no session: give 0x and 64 lower-case hexadecimal digits.")
        if not tool:
            raise UserError("A note is about a tool: name it.")
        return self._folder / f"{session_id[2:]}-{keccak(tool.encode())[:8].hex()}.json"
