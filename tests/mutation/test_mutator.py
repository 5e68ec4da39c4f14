"""Every operator of the mutator makes the edits that are expected of it, and no others."""

import pytest

from tests.mutation.mutator import Mutator
from tests.mutation.plan import TESTS, sources

HEAD = "# pragma version ~=0.4.3\n"


def mutants(body, arguments="a: uint256, b: uint256", decorators="@external"):
    source = f"{HEAD}\n{decorators}\ndef f({arguments}):\n    {body}\n"
    return source, Mutator("F.vy", source).mutants()


def edits(body, kind, **options):
    """Old and new text of each edit of a kind."""
    _, found = mutants(body, **options)
    return [(mutant.old, mutant.new) for mutant in found if mutant.kind == kind]


@pytest.mark.parametrize(
    ("operator", "other"),
    [("+", "-"), ("-", "+"), ("*", "//"), ("//", "*"), ("%", "*"), ("<<", ">>"), (">>", "<<"), ("&", "|"), ("|", "&")],
)
def test_operator__of_arithmetic__becomes_its_counterpart(operator, other):
    assert edits(f"c: uint256 = a {operator} b", "operator") == [(operator, other)]


@pytest.mark.parametrize(("operator", "other"), [("+=", "-="), ("-=", "+=")])
def test_operator__of_an_augmented_assignment__is_turned_round(operator, other):
    assert edits(f"self.x {operator} a", "operator") == [(operator, other)]


def test_operator__of_a_power__is_left_alone():
    assert edits("c: uint256 = 2 ** 8", "operator") == []


@pytest.mark.parametrize(
    ("operator", "others"),
    [("<", ["<=", ">="]), ("<=", ["<", ">"]), (">", ["<=", ">="]), (">=", ["<", ">"]), ("==", ["!="]), ("!=", ["=="])],
)
def test_comparison__of_each_kind__moves_its_boundary_and_turns_round(operator, others):
    assert sorted(edits(f"c: bool = a {operator} b", "comparison")) == sorted((operator, other) for other in others)


def test_comparison__inside_parentheses_with_a_comment__is_found():
    body = "c: bool = (\n        (a + 1)  # < or >\n        >= b\n    )"
    assert sorted(edits(body, "comparison")) == [(">=", "<"), (">=", ">")]
    assert edits(body, "operator") == [("+", "-")]


def test_boolean__of_three_operands__is_swapped_at_each_place():
    source, found = mutants("c: bool = a > 1 and b > 2 and a > 3")
    swapped = [mutant.apply(source).splitlines()[-1].strip() for mutant in found if mutant.kind == "boolean"]
    assert swapped == ["c: bool = a > 1 or b > 2 and a > 3", "c: bool = a > 1 and b > 2 or a > 3"]


def test_boolean__negated__loses_its_not():
    source, (mutant, *_) = (
        mutants("assert not self.done[a]")[0],
        [one for one in mutants("assert not self.done[a]")[1] if one.kind == "boolean"],
    )
    assert mutant.apply(source).splitlines()[-1] == "    assert self.done[a]"


@pytest.mark.parametrize(("number", "others"), [("0", ["1"]), ("1", ["0", "2"]), ("7", ["6", "8"])])
def test_constant__of_a_number__moves_by_one_and_stays_positive(number, others):
    assert sorted(edits(f"c: uint256 = {number}", "constant")) == [(number, other) for other in others]


def test_constant__of_a_truth__is_turned_round():
    assert edits("c: bool = True", "constant") == [("True", "False")]
    assert edits("c: bool = False", "constant") == [("False", "True")]


def test_constant__declared_for_the_file__is_mutated_by_its_value():
    source = HEAD + "MAX: constant(uint256) = 2 ** 32 - 1\nNAME: constant(String[9]) = 'x'\n"
    found = Mutator("F.vy", source).mutants()
    assert sorted((one.old, one.new) for one in found) == [
        ("-", "+"), ("1", "0"), ("1", "2"), ("2", "1"), ("2", "3"), ("32", "31"), ("32", "33"),
    ]  # fmt: skip
    assert {one.function for one in found} == {""}


def test_constant__in_a_type_or_a_reason__is_left_alone():
    assert edits('c: String[64] = ""', "constant") == []
    assert edits('assert a > b, "1 of 2"', "constant") == []


@pytest.mark.parametrize(
    "statement",
    ["self.x = a", "self.x += a", "log Moved(a=a)", "self._pay(a)", "extcall TOKEN.send(a)", "assert a > b, 'why'"],
)
def test_dropped__of_a_statement__leaves_pass(statement):
    kind = "removed assert" if statement.startswith("assert") else "dropped statement"
    assert edits(statement, kind) == [(statement, "pass")]


def test_dropped__over_several_lines__goes_as_a_whole():
    statement = "log Moved(\n        a=a,\n        b=b,\n    )"
    source, found = mutants(statement)
    (mutant,) = [one for one in found if one.kind == "dropped statement"]
    assert mutant.apply(source).endswith("    pass\n")


def test_dropped__of_docstrings_and_declarations__does_not_happen():
    _, found = mutants('"""\n    @notice Of 1 + 1.\n    """\n    c: uint256 = a')
    assert found == []


def test_min_max__called__is_swapped():
    assert edits("c: uint256 = min(a, b)", "min/max") == [("min", "max")]
    assert edits("c: uint256 = max(a, b)", "min/max") == [("max", "min")]


def test_role__of_the_sender__becomes_an_account_that_is_known():
    assert edits("self.x[msg.sender] = 1", "swapped role", arguments="to: address") == [("msg.sender", "to")]
    assert edits("self.x[msg.sender] = 1", "swapped role") == []


def test_role__of_an_argument__becomes_its_twin_and_the_sender():
    arguments = "other: address, client: address, operator: address"
    assert edits("self._pay(client)", "swapped role", arguments=arguments) == [
        ("client", "msg.sender"), ("client", "operator"),
    ]  # fmt: skip


def test_role__in_a_pure_function__is_never_the_sender():
    options = {"arguments": "a: address, b: address", "decorators": "@internal\n@pure"}
    assert edits("self._hash(a)", "swapped role", **options) == [("a", "b")]


def test_role__of_a_local_variable__is_known_after_its_declaration_only():
    body = "self.x[msg.sender] = 1\n    payer: address = self.y\n    self.x[msg.sender] = 2"
    source, found = mutants(body)
    lines = [mutant.apply(source).splitlines()[-1].strip() for mutant in found if mutant.kind == "swapped role"]
    assert lines == ["self.x[payer] = 2"]


def test_role__of_a_field__is_swapped_where_it_is_read():
    assert edits("c: address = session.client", "swapped role") == [("client", "operator")]
    assert edits("self.client = empty(address)", "swapped role") == []


def test_half__of_a_packed_word__is_swapped():
    assert edits("c: uint256 = packing._low(a)", "swapped half") == [("_low", "_high")]
    assert edits("c: uint256 = packing._second(a)", "swapped half") == [("_second", "_first")]


def test_apply__to_another_source__is_refused():
    source, found = mutants("self.x += a")
    with pytest.raises(ValueError, match=r"F\.vy is not the source in which .* was found at line 5"):
        found[0].apply(source.replace("self.x += a", "self.y = a"))


def test_key__of_two_edits__differs_and_changes_with_the_source():
    source, found = mutants("c: bool = a < b")
    assert len({mutant.key(source) for mutant in found}) == len(found) == 2
    assert found[0].key(source) != found[0].key(source + "\n")
    assert found[0].key(source) == mutants("c: bool = a < b")[1][0].key(source)


def test_lines__of_a_mutant__are_whole_with_single_spaces():
    source, found = mutants("log Moved(\n        a=a,\n        b=1,\n    )")
    assert found[0].lines(source) == ("log Moved( a=a, b=1, )", "pass")
    assert found[1].lines(source) == ("b=1,", "b=0,")


def test_diff__of_a_mutant__is_its_line():
    source, found = mutants("self.x -= a")
    assert found[-1].diff(source).splitlines()[-2:] == ["-    self.x -= a", "+    self.x += a"]


@pytest.mark.parametrize("file", sources())
def test_mutants__of_every_contract__are_distinct_edits_that_apply(file):
    source = sources()[file]
    found = Mutator(file, source).mutants()
    assert len({mutant.apply(source) for mutant in found}) == len(found) > 0
    assert all(mutant.old != mutant.new for mutant in found)


def test_plan__of_the_sources__names_tests_for_each():
    assert sorted(TESTS) == sorted(sources())
