"""Workflow files: what is read, what is refused and where, and that a pinned one is the same but for its pins."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.agent.references import MAX_RESOLVED, BadReferenceError, references
from counterfoil.agent.strict_yaml import MAX_BYTES
from counterfoil.agent.workflow import MAX_STEPS, WorkflowError, dump, load, pinned, read, resolve

EXAMPLE = """
name: market-brief
budget: 50000            # base units for the whole run
steps:
  - id: price
    category: data:crypto-price
    need: data:crypto
    task: bitcoin spot price in usd
    input: {symbol: BTC}
    calls: 2
    max_price_per_call: 2000
    budget: 5000
    service_id: 7
    try_both: true
    judge:
      status: [200]
      json_schema: {type: object, required: [price_usd]}
      matches: price_\\w+
      within_ms: 2000
      command: [./judge, --strict]
    form: json
    path: /price?vs=usd
    method: GET
    tool: quote
  - id: brief
    category: llm:completion
    input: "Say in one sentence what ${price.0.price_usd} dollars for a bitcoin mean."
"""


def steps(*lines):
    return "name: w\nsteps:\n" + "".join(f"  - {line}\n" for line in lines)


def reading(text):
    return read(text.encode(), "w.yaml")


def test_load__of_every_field__gives_their_values(tmp_path):
    path = tmp_path / "brief.yaml"
    path.write_text(EXAMPLE)
    workflow = load(path)
    price, brief = workflow.steps
    assert (workflow.name, workflow.budget) == ("market-brief", 50000)
    assert (price.id, price.category, price.need, price.task) == (
        "price", "data:crypto-price", "data:crypto", "bitcoin spot price in usd",
    )  # fmt: skip
    assert (price.input, price.calls, price.max_price_per_call, price.budget) == ({"symbol": "BTC"}, 2, 2000, 5000)
    assert (price.service_id, price.try_both, price.form, price.path) == (7, True, "json", "/price?vs=usd")
    assert (price.method, price.tool_of("data:crypto-price")) == ("GET", "quote")
    assert (price.judge.status, price.judge.matches, price.judge.within_ms) == ((200,), r"price_\w+", 2000)
    assert (price.judge.command, price.judge.json_schema["required"]) == (("./judge", "--strict"), ["price_usd"])
    assert (brief.calls, brief.judge, brief.budget, brief.form, brief.method) == (1, None, None, None, "POST")
    assert brief.tool_of(brief.category) == "completion"


def test_read__of_plain_words__takes_only_what_json_knows_for_more_than_text():
    workflow = reading(steps("{id: a, task: t, input: [NO, yes, 2026-01-01, 010, 12:30, 0x10, 1, 1.5, 1e3, true, ~]}"))
    assert workflow.steps[0].input == ["NO", "yes", "2026-01-01", "010", "12:30", "0x10", 1, 1.5, 1000.0, True, None]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &x 1\nb: *x", "line 1, column 4: anchors .* are not read"),
        ("&x {a: 1}", "line 1, column 1: anchors"),
        ("a: {<<: {b: 1}}", "line 1, column 5: merges"),
        ("a: 1\na: 2", "line 2, column 1: the key 'a' stands here a second time"),
        ("a: !!python/object:os.system x", r"line 1, column 4: tags \(!\) are not read"),
        ("1: a", "line 1, column 1: a key is a text"),
        ("? [a]\n: 1", "a key is a text"),
        ("[" * 100, "line 1, column 33: values are nested more than 32 deep"),
        ("a: " + "9" * 79, "a number has at most 78 digits"),
        ("a: 1e999", "the number is out of range"),
        ('a: "\\ud800"', "line 1, column 4: an escape names half a character"),
        ('a: "\\Uffffffff"', "holds a character that YAML does not know"),
        ("a: \0", "holds a character that YAML does not know"),
        ("a: [", "line 1, column 5: .*: correct the YAML"),
        ("a: 1\n---\nb: 1", "line 2, column 1: but found another document"),
        ("a" * (MAX_BYTES + 1), f"over {MAX_BYTES} bytes"),
        ("", "is no mapping"),
        ("- a", "is no mapping"),
    ],
)
def test_read__of_what_is_no_plain_yaml__names_the_place(text, words):
    with pytest.raises(WorkflowError, match=f"The workflow w.yaml .*{words}"):
        reading(text)


def test_read__of_a_character_that_json_escapes_as_two_halves__is_that_character():
    assert reading(steps('{id: a, task: t, input: "\\ud83d\\ude00"}')).steps[0].input == "\N{GRINNING FACE}"


def test_read__of_bytes_that_are_no_text__says_so():
    with pytest.raises(WorkflowError, match="no text in UTF-8"):
        read(b"\xff", "w.yaml")


def test_load__of_a_file_that_is_not_there__says_so(tmp_path):
    with pytest.raises(WorkflowError, match=r"cannot be read \(No such file or directory\): check the path"):
        load(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{id: A, task: t}", r"step 1 \(A\), id: "),
        ("{task: t}", "step 1, id: is missing: add it"),
        ("{id: a}", r"step 1 \(a\): names no category, task, need or service_id: give one"),
        ("{id: a, task: t, prise: 1}", r"step 1 \(a\), prise: is no field"),
        ("{id: a, task: t, calls: 0}", r"step 1 \(a\), calls: .*greater than or equal to 1"),
        ("{id: a, task: t, calls: 101}", r"step 1 \(a\), calls: .*less than or equal to 100"),
        ("{id: a, task: t, calls: true}", "calls: Input should be a valid integer"),
        ("{id: a, task: t, calls: 1.0}", "calls: Input should be a valid integer"),
        ("{id: a, task: t, budget: -1}", r"step 1 \(a\), budget: "),
        (f"{{id: a, task: t, max_price_per_call: {2**128}}}", "max_price_per_call: "),
        ("{id: a, category: 'No'}", "category: "),
        (f"{{id: a, task: {'é' * 33}}}", "task: is longer than 64 bytes"),
        (f"{{id: a, task: t, input: {2**53}}}", "input: holds what JSON does not carry exactly"),
        ("{id: a, task: t, form: html}", "form: Input should be 'json', 'mcp' or 'chat'"),
        ("{id: a, task: t, path: price}", "path: is no path: begin it with /"),
        ("{id: a, task: t, path: /../settle}", r"path: holds a space, a # or a way up"),
        ("{id: a, task: t, method: TRACE}", "method: "),
        ("{id: a, task: t, judge: {within_ms: 0}}", r"step 1 \(a\), judge.within_ms: "),
        ("{id: a, task: t, judge: {status: [404]}}", r"judge.status.0: "),
        ("{id: a, task: t, judge: {matches: '('}}", "judge.matches: is no regular expression"),
        ("{id: a, task: t, judge: {json_schema: {type: 5}}}", r"judge.json_schema: is no JSON Schema at \$.type"),
        ("{id: a, task: t, judge: {json_schema: {$ref: 'http://x/y'}}}", "refers to 'http://x/y', which is not in it"),
        ("{id: a, task: t, judge: {json_schema: {$ref: '#/$defs/x'}}}", "refers to '#/\\$defs/x', which is not in it"),
        ("{id: a, task: t, judge: {json_schema: {patternProperties: {a: {}}}}}", "has patternProperties"),
        ("{id: a, task: t, judge: {json_schema: {pattern: '('}}}", r"is no JSON Schema at \$.pattern"),
        ("{id: a, task: t, judge: {command: [a], url: 'http://x'}}", "judge: has a command and a url: keep one"),
        ("{id: a, task: t, judge: {command: ['']}}", "judge: has a command without a program"),
        ("{id: a, task: t, judge: {url: 'ftp://x'}}", "judge.url: is no http or https URL"),
        ("{id: a, task: t, judge: {url: 'http://me:secret@x/'}}", "judge.url: holds a name or a password"),
    ],
)
def test_read__of_a_step_that_is_wrong__names_the_place(line, words):
    with pytest.raises(WorkflowError, match=f"Correct the workflow w.yaml: .*{words}") as refused:
        reading(steps(line))
    assert "secret" not in str(refused.value)


def test_read__of_several_mistakes__names_all_of_them():
    with pytest.raises(WorkflowError) as refused:
        reading("name: w\nx: 1\nsteps:\n  - {id: a, task: t, calls: 0}\n  - {id: b, task: t, y: 1}\n")
    said = str(refused.value)
    assert "step 1 (a), calls: " in said
    assert "step 2 (b), y: is no field" in said
    assert "; x: is no field" in said


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["{id: a, task: t}", "{id: a, task: t}"], r"step 2 \(a\), id: another step has this id"),
        (["{id: a, task: t, input: '${a}'}"], r"step 1 \(a\), input: \$\{a\} is not an earlier step"),
        (["{id: a, task: t, input: '${b.x}'}", "{id: b, task: t}"], r"\$\{b.x\} is not an earlier step"),
        (["{id: a, task: t}", "{id: b, task: t, input: {k: ['${c}']}}"], r"\$\{c\} names no step: the steps are a, b"),
        (["{id: a, task: t, input: 'x ${a'}"], "has no end: close it with }"),
        (["{id: a, task: t, input: '${A b}'}"], r"'\$\{A b\}' is no reference"),
        (["{id: a, task: t, input: '${}'}"], r"'\$\{\}' is no reference"),
        ([f"{{id: s{number}, task: t}}" for number in range(MAX_STEPS + 1)], "steps: .*at most 64 items"),
    ],
)
def test_read__of_steps_that_do_not_fit_each_other__names_them(lines, words):
    with pytest.raises(WorkflowError, match=words):
        reading(steps(*lines))


def test_read__without_steps__says_so():
    with pytest.raises(WorkflowError, match="there are no steps"):
        reading("name: w\nsteps: []")


# --- references

OUTPUTS = {"price": {"usd": 5, "by": [{"name": "x"}, "y"], "0": "zero", "dot": None}, "list": [1, 2]}


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ("${price.usd}", 5),
        ("${price.by}", [{"name": "x"}, "y"]),
        ("${price.by.0.name}", "x"),
        ("${price.0}", "zero"),
        ("${price.dot}", None),
        ("${list.1}", 2),
        ("is ${price.usd} of ${price.by.1}", "is 5 of y"),
        ("${price.by} and ${price.dot}", '[{"name":"x"},"y"] and null'),
        ("$${price.usd} costs $5 {x} $", "${price.usd} costs $5 {x} $"),
        ("$${", "${"),
        ({"a": ["${price.usd}", {"${price.usd}": "${list.0}"}], "b": 1.5}, {"a": [5, {"${price.usd}": 1}], "b": 1.5}),
    ],
)
def test_resolve__of_references__takes_values_with_their_type_and_text_within_text(value, resolved):
    assert resolve(value, OUTPUTS) == resolved


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("${none}", "there is no output of the step none"),
        ("${price.eur}", r"\$\{price.eur\} cannot be followed: price has no eur, it is an object with 'usd', 'by'"),
        ("a ${price.by.2}", "price.by has no 2, it is a list of 2"),
        ("${price.by.-1}", "price.by has no -1"),
        ("${price.by.00}", "price.by has no 00"),
        ("${price.usd.x}", "price.usd has no x, it is a int"),
    ],
)
def test_resolve__of_a_path_that_is_not_there__says_what_is(value, words):
    with pytest.raises(BadReferenceError, match=words):
        resolve(value, OUTPUTS)


def test_resolve__of_many_references_to_a_large_output__is_refused():
    large = {"a": "x" * (MAX_RESOLVED // 2)}
    assert resolve(["${a}"], large) == [large["a"]]
    with pytest.raises(BadReferenceError, match=f"over {MAX_RESOLVED} bytes"):
        resolve(["${a}"] * 10_000, large)
    with pytest.raises(BadReferenceError, match=f"over {MAX_RESOLVED} bytes"):
        resolve("${a}" * 10_000, large)


@pytest.mark.parametrize("hostile", [float("nan"), "\ud800", json.loads("[" * 900 + "]" * 900)])
def test_resolve__of_an_output_that_is_no_json__never_breaks(hostile):
    deep = [hostile]
    for _ in range(2000):
        deep = [deep]
    for value in ("${a}", "text ${a}"):
        with pytest.raises(BadReferenceError, match=r"\$\{a\}"):
            resolve(value, {"a": deep})


plain = st.text(max_size=20).filter(lambda text: "${" not in text)
values = st.recursive(
    st.none() | st.booleans() | st.integers(1 - 2**53, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | plain,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(plain.filter("<<".__ne__), below, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(values)
def test_resolve__of_what_refers_to_nothing__is_the_same(value):
    assert list(references(value)) == []
    assert resolve(value, {}) == value


@given(st.text(max_size=30))
def test_resolve__of_escaped_text__gives_the_text(text):
    assert resolve(text.replace("${", "$${"), {}) == text


@given(values)
def test_resolve__of_one_reference__gives_the_output_and_in_text_what_reads_as_it(value):
    assert resolve("${a}", {"a": value}) == value
    text = resolve("-${a}", {"a": value})
    assert text[1:] == value if isinstance(value, str) else json.loads(text[1:]) == value


# --- writing

labels = st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1, max_size=15)


@st.composite
def documents(draw):
    made = [
        {
            "id": f"s{number}", "task": draw(labels), "input": draw(values), "calls": draw(st.integers(1, 100)),
            "budget": draw(st.none() | st.integers(0, 2**128 - 1)), "try_both": draw(st.booleans()),
            "judge": draw(st.none() | st.just({"status": [200, 204], "json_schema": {"const": 1}})),
        }
        for number in range(draw(st.integers(1, 3)))
    ]  # fmt: skip
    return {"name": draw(labels), "steps": made}


@given(documents())
@settings(max_examples=150, deadline=None)
def test_dump__of_any_workflow__reads_back_as_it_was(document):
    workflow = reading(json.dumps(document))
    again = reading(dump(workflow))
    assert again == workflow
    assert (again.digest, dump(again)) == (workflow.digest, dump(workflow))


@pytest.mark.parametrize(
    "text", ["\x85", "a\nb", " a", "a: b", "# a", "1", "true", "~", "", "\u2028", "\ufeff", "\t", "é日"]
)
def test_dump__of_an_odd_text__reads_back_as_it_was(text):
    workflow = reading(json.dumps({"name": "w", "steps": [{"id": "a", "task": "t", "input": [text, {text: text}]}]}))
    assert workflow.steps[0].input == [text, {text: text}]
    assert reading(dump(workflow)) == workflow


def test_pinned__of_some_steps__changes_only_their_service():
    workflow = reading(EXAMPLE)
    again = pinned(workflow, {"brief": 12, "price": 9})
    assert [step.service_id for step in again.steps] == [9, 12]
    bare = {"service_id": None}
    assert [step.model_copy(update=bare) for step in again.steps] == [
        step.model_copy(update=bare) for step in workflow.steps
    ]
    assert reading(dump(again)) == again
    assert again.digest != workflow.digest


@pytest.mark.parametrize(("services", "words"), [({"none": 1}, "'none' is no step of"), ({"brief": 0}, "service_id: ")])
def test_pinned__of_what_cannot_be_pinned__is_refused(services, words):
    with pytest.raises(WorkflowError, match=words):
        pinned(reading(EXAMPLE), services)


def test_digest__of_the_same_workflow_written_otherwise__is_the_same():
    one = reading("name: w\nsteps: [{id: a, task: t, input: {x: 1, y: 2.0}}]")
    other = reading("steps:\n- input: {y: 2, x: 1}\n  task: t\n  id: a\n  calls: 1\nname: w")
    assert one.digest == other.digest
    assert re.fullmatch("0x[0-9a-f]{64}", one.digest)
    assert one.digest != reading("name: w\nsteps: [{id: a, task: t, input: {x: 1, y: 3}}]").digest
