"""Notes about tools, kept until a record is signed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from counterfoil.agent.notes import NoteBook, ToolNote
from indexer.errors import UserError

SESSION = "0x" + "ab" * 32


@pytest.fixture
def book(tmp_path):
    return NoteBook(tmp_path / "notes")


def test_keep__twice_for_one_tool__leaves_the_last(book):
    for task in ("bitcoin price", "bitcoin spot price"):
        book.keep(ToolNote(session_id=SESSION, tool="quote", task=task))
    book.keep(ToolNote(session_id=SESSION, tool="chart", note="slow"))
    assert book.find(SESSION, "quote") == ToolNote(session_id=SESSION, tool="quote", task="bitcoin spot price")
    assert book.find(SESSION, "chart").note == "slow"
    assert book.find(SESSION, "none") is None


@pytest.mark.parametrize(
    ("session_id", "tool", "words"),
    [("../../etc", "x", "is no session"), (SESSION.upper(), "x", "is no session"), (SESSION, "", "is about a tool")],
)
def test_keep__of_what_names_no_session_or_tool__is_refused_and_writes_nothing(book, tmp_path, session_id, tool, words):
    with pytest.raises(UserError, match=words):
        book.keep(ToolNote(session_id=session_id, tool=tool))
    assert list(tmp_path.iterdir()) == []


@given(st.sampled_from([("tool", 64), ("need", 64), ("task", 64), ("note", 280)]), st.sampled_from(["x", "é", "日"]))
def test_tool_note__of_any_field__holds_as_many_bytes_as_the_ledger_takes(field, letter):
    name, limit = field
    most = letter * (limit // len(letter.encode()))
    given_ = {"session_id": SESSION, "tool": "t"}
    assert getattr(ToolNote(**given_ | {name: most}), name) == most
    with pytest.raises(ValidationError, match=f"longer than {limit} bytes"):
        ToolNote(**given_ | {name: most + letter})


def test_tool_note__with_a_line_end__says_so():
    with pytest.raises(ValidationError, match="cannot be printed, such as a line end"):
        ToolNote(tool="t", note="a\nb")


def test_find__of_a_note_about_another_tool__says_which_file(book):
    path = book.keep(ToolNote(session_id=SESSION, tool="quote"))
    path.write_text(ToolNote(session_id=SESSION, tool="chart").model_dump_json())
    with pytest.raises(UserError, match="is of another session or tool"):
        book.find(SESSION, "quote")


@pytest.mark.parametrize("data", [b"", b"{", b'{"session_id": 1}', b"x" * 10_000])
def test_find__of_a_damaged_file__says_which(book, data):
    path = book.keep(ToolNote(session_id=SESSION, tool="quote"))
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"cannot be read .*: correct or remove it"):
        book.find(SESSION, "quote")
