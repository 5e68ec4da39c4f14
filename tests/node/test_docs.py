"""docs/node.md names what the code has: refusals with their statuses, metrics, log events, settings, bounds."""

import re
import tomllib

import click
import pytest

from counterfoil.cli.nodes import node
from counterfoil.node import book, settlement
from counterfoil.node.metrics import Metrics
from counterfoil.node.server import refusal_status
from counterfoil.node.serving import HEAD_SECONDS, MAX_HEAD_BYTES, SPARE_CONNECTIONS
from counterfoil.node.vouchers import Refusal
from counterfoil.node.wire import METHODS
from indexer.settings import Settings, flag_of, load_settings
from tests.support.chain import ROOT

PAGE = (ROOT / "docs" / "node.md").read_text()
WORDS = " ".join(PAGE.split())
ROWS = {
    name: cells
    for names, cells in re.findall(r"^\| (`[^|]+`) \| (.*) \|$", PAGE, re.MULTILINE)
    for name in re.findall(r"`([^`]+)`", names)
}


@pytest.mark.parametrize("refusal", Refusal)
def test_page__of_a_refusal__has_its_status_and_whether_to_try_again(refusal):
    status, again = refusal_status(refusal)
    assert ROWS[refusal].startswith(f"{status} | ")
    assert ("`Retry-After: 1`" in ROWS[refusal]) is again


def test_page__of_metrics__names_every_one():
    collected = [metric for metric in Metrics().registry.collect() if metric.name.startswith("counterfoil")]
    names = {metric.name + "_total" * (metric.type == "counter") for metric in collected}
    assert {name for name in ROWS if name.startswith("counterfoil_node_")} == names


def test_page__of_log_events__names_every_one():
    sources = [*(ROOT / "counterfoil" / "node").glob("*.py"), ROOT / "counterfoil" / "cli" / "node_serve.py"]
    text = "".join(path.read_text() for path in sources)
    logged = set(re.findall(r"(?:_log|get_logger\(\))\.(?:info|warning|error)\(\s*\"(\w+)\"", text))
    assert logged | {"settlement_stuck", "settlement_failed"} <= set(ROWS)
    assert len(logged) > 8


def test_page__of_settings__names_those_that_the_command_takes():
    with click.Context(node) as context:
        command = node.get_command(context, "serve")
    flags = {flag for one in command.params for flag in one.opts}
    _, _, last = PAGE.partition("\n## Settings\n")
    named = set(re.findall(r"`([a-z_]+)`", last)) & set(Settings.model_fields)
    assert named == {name for name in Settings.model_fields if flag_of(name) in flags}
    assert set(re.findall(r"`(node_[a-z_]+)`", PAGE)) - {"node_unavailable"} <= named


def test_page__of_bounds__has_those_of_the_code():
    assert f"the newest {book.MAX_FINAL} of them with at most {book.MAX_FINAL_BYTES // 2**20} MiB" in WORDS
    assert f"for {HEAD_SECONDS:g} seconds is ended; a request head is at most {MAX_HEAD_BYTES // 1024} KiB" in WORDS
    assert f"`node_max_calls` + {SPARE_CONNECTIONS} connections" in WORDS
    assert f"more than {settlement.GIVE_UP_BLOCKS} above the block" in WORDS
    assert (settlement.MAX_REFUSALS, settlement.MAX_PAUSE) == (5, 60)
    assert f"Any of {', '.join(METHODS[:-1])} and {METHODS[-1]} on" in WORDS
    assert f"`{Settings().node_listen}` at first" in WORDS


def test_page__of_its_settings_file__is_one(tmp_path):
    (example,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    path = tmp_path / "counterfoil.toml"
    path.write_text(example)
    settings = load_settings(config=path)
    assert set(tomllib.loads(example)) <= set(Settings.model_fields)
    assert settings.upstreams() == {
        "llm:completion": "http://127.0.0.1:8001/v1",
        "mcp:web-search": "http://127.0.0.1:8002/mcp",
    }
