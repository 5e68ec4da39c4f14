"""docs/operator-commands.md and the commands say the same."""

import re

import click
import pytest

from counterfoil.cli.nodes import node
from tests.support.chain import ROOT

PAGE = (ROOT / "docs" / "operator-commands.md").read_text()
USES = [found.replace("\\|", "|") for found in re.findall(r"^\| `([a-z-]+ [^`]+)`", PAGE, re.MULTILINE)]
OTHERS = {"serve", "show"}


def commands():
    with click.Context(node) as context:
        return {name: node.get_command(context, name) for name in node.list_commands(context) if name not in OTHERS}


def test_page__of_commands__names_every_one():
    assert {use.split()[0] for use in USES} == set(commands())


@pytest.mark.parametrize("use", USES)
def test_page__of_a_use__has_the_arguments_and_options_of_the_command(use):
    name, *words = use.split()
    command = commands()[name]
    options = {option for one in command.params if isinstance(one, click.Option) for option in one.opts}
    arguments = [one.metavar or one.name.upper() for one in command.params if isinstance(one, click.Argument)]
    named = [word.strip("[]") for word in words]
    bare = [word for before, word in zip(["", *named], named, strict=False) if not before.startswith("--")]

    assert {word for word in named if word.startswith("--")} <= options
    assert [word for word in bare if not word.startswith("--")] == [
        {"STATE": "on|off"}.get(argument, argument) for argument in arguments
    ]
    required = {one.opts[0] for one in command.params if isinstance(one, click.Option) and one.required}
    assert required <= set(named)


@pytest.mark.parametrize("name", sorted(set(commands()) - {"status"}))
def test_command__that_writes__has_dry_run_yes_and_json(name):
    options = {option for one in commands()[name].params for option in one.opts}

    assert {"--dry-run", "--yes", "--json"} <= options
