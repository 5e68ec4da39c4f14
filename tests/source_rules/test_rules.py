"""The sources keep the house rules, and each rule finds a sample that breaks it."""

import pytest

from tests.source_rules import rules

SOURCES = sorted((rules.ROOT / "contracts").rglob("*.vy*"))
BUILT = ("contracts", "scripts", "counterfoil", "indexer", ".ci", ".github")
BUILD_FILES = ("Makefile", "pyproject.toml", "ape-config.yaml", "package.json")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(rules.ROOT / "contracts")))
def test_sources__of_contracts__keep_every_rule(path):
    assert rules.findings(path) == []


def test_build__of_the_repository__never_uses_the_experimental_code_generator():
    files = [rules.ROOT / name for name in BUILD_FILES]
    for folder in BUILT:
        files += [
            path for path in (rules.ROOT / folder).rglob("*") if path.suffix in (".py", ".vy", ".yml", ".toml", "")
        ]
    texts = [path for path in files if path.is_file()]
    assert len(texts) > len(SOURCES)
    assert [path.name for path in texts if list(rules.venom(path.read_text(errors="replace")))] == []


def sample(body, head=""):
    """A contract with one internal function of that body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return rules.annotated(f"""
interface Other:
    def act() -> uint256: nonpayable
    def look() -> uint256: view

{head}
total: uint256
other: Other
entries: DynArray[uint256, 8]
table: HashMap[uint256, uint256]

event Happened:
    amount: uint256

@internal
def _change() -> uint256:
    self.total += 1
    return self.total

@internal
@view
def _look() -> uint256:
    return self.total

@internal
def _sample(a: uint256, b: uint256, c: bool, data: Bytes[64]):
{lines}
""")


def test_non_ascii__in_a_comment__is_found():
    assert list(rules.non_ascii("# plain\n# caf\u00e9\n")) == ["line 2: a character that is not ASCII"]
    assert list(rules.non_ascii("# plain\n")) == []


@pytest.mark.parametrize(
    "expression", ["a + 1 if c else b", "a if c else b * 2", "a if c else max(b - 1, a)", "a if c else ~b"]
)
def test_ternaries__with_operator_in_a_branch__are_found(expression):
    (found,) = rules.ternaries(sample(f"x: uint256 = {expression}"))
    assert found.endswith("a ternary with an operator in a branch")


def test_ternaries__over_arrays__are_found():
    dynamic = "x: DynArray[uint256, 8] = self.entries if c else []"
    static = "x: uint256[2] = [a, b] if c else [b, a]"
    for body in (dynamic, static):
        (found,) = rules.ternaries(sample(body))
        assert found.endswith("a ternary over arrays")


def test_ternaries__of_plain_words__are_allowed():
    assert list(rules.ternaries(sample("x: uint256 = a if a > b else b"))) == []


@pytest.mark.parametrize(
    "call",
    [
        "create_minimal_proxy_to(self)",
        "create_copy_of(self)",
        "create_from_blueprint(self)",
        "raw_create(data)",
    ],
)
def test_factories__of_any_kind__are_found(call):
    (found,) = rules.factories(sample(f"x: address = {call}"))
    assert found.endswith("deploys a contract")


CHANGES = ["self._change()", "extcall self.other.act()", "self.entries.pop()"]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("place", "body"),
    [
        ("concat(...)", "x: Bytes[96] = concat(data, convert({change}, bytes32))"),
        ("slice(...)", "x: Bytes[64] = slice(data, {change}, 1)"),
        ("log", "log Happened(amount={change})"),
        ("range(...)", "for i: uint256 in range({change}, bound=8):\n    pass"),
        ("the right side of an assignment in place to an entry", "self.entries[0] += {change}"),
    ],
)
def test_misplaced_effects__in_each_place__are_found(place, body, change):
    found = list(rules.misplaced_effects(sample(body.format(change=change))))
    assert len(found) == 1
    assert found[0].endswith(f"a call with effects inside {place}")


@pytest.mark.parametrize(
    "body",
    [
        "log Happened(amount=self._look())",
        "log Happened(amount=staticcall self.other.look())",
        "for i: uint256 in range(len(self.entries), bound=8):\n    self._change()",
        "self.total += self._change()",
        "self.entries[0] += self._look()",
        "x: uint256 = self._change()\nlog Happened(amount=x)",
    ],
)
def test_misplaced_effects__in_harmless_code__are_none(body):
    assert list(rules.misplaced_effects(sample(body))) == []


def test_missing_lock__with_an_external_function__is_found():
    source = "@external\ndef act():\n    pass\n"
    expected = "external functions (act) without `# pragma nonreentrancy on`"
    assert list(rules.missing_lock(source, rules.annotated(source))) == [expected]
    locked = "# pragma nonreentrancy on\n" + source
    assert list(rules.missing_lock(locked, rules.annotated(locked))) == []
    inner = source.replace("@external", "@internal").replace("act", "_act")
    assert list(rules.missing_lock(inner, rules.annotated(inner))) == []


@pytest.mark.parametrize("kind", ["String[8]", "Bytes[8]", "DynArray[uint256, 2]"])
def test_event_fields__indexed_and_of_variable_size__are_found(kind):
    module = rules.annotated(f"event Happened:\n    what: indexed({kind})\n")
    assert list(rules.event_fields(module)) == ["line 2: Happened.what is indexed and of variable size"]


@pytest.mark.parametrize("kind", ["Thing", "DynArray[Thing, 2]"])
def test_event_fields__that_are_structs__are_found(kind):
    module = rules.annotated(f"struct Thing:\n    a: uint256\n\nevent Happened:\n    what: {kind}\n")
    assert list(rules.event_fields(module)) == ["line 5: Happened.what is a struct"]


def test_event_fields__that_are_structs_of_a_module__are_found():
    source = "from .modules import lottery\n\nevent Happened:\n    what: lottery.Terms\n"
    assert list(rules.event_fields(rules.annotated(source))) == ["line 4: Happened.what is a struct"]


def test_event_fields__of_fixed_size__are_allowed():
    source = "event Happened:\n    a: indexed(bytes32)\n    b: indexed(address)\n    c: String[8]\n    d: uint8\n"
    assert list(rules.event_fields(rules.annotated(source))) == []


@pytest.mark.parametrize("text", ["vyper --experimental-codegen x", "# pragma experimental-codegen", "vyper --venom x"])
def test_venom__however_it_is_asked_for__is_found(text):
    assert list(rules.venom(text)) == ["line 1: the experimental code generator"]
