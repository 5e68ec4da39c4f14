"""What a node reports of itself, whose word it is, and where it goes."""

import asyncio
import json
import sys
from dataclasses import dataclass, field

import pytest
import rfc8785
from eth_hash.auto import keccak
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from counterfoil.chain.typed_data import heartbeat as heartbeat_data
from counterfoil.node import heartbeat
from counterfoil.node.heartbeat import MAX_MODELS, models_in, vram_mib
from tests.support.caller import Caller, until
from tests.support.market import serving


@dataclass
class Coordinator:
    """Takes heartbeats, with the status that it is told to."""

    status: int = 200
    got: list = field(default_factory=list)

    def app(self):
        async def take(request):
            self.got.append(await request.json())
            return JSONResponse({}, status_code=self.status)

        return Starlette(routes=[Route("/base/telemetry/heartbeat", take, methods=["POST"])])


def signer_of(scene, beat, node_id):
    registry = scene.world.registry
    report = beat["report"]
    digest = "0x" + keccak(rfc8785.dumps(report)).hex()
    assert beat["digest"] == digest
    data = heartbeat_data(scene.world.chain.chain_id, registry.address, node_id, report["sent_at"], digest)
    return data.signer_of(bytes.fromhex(beat["signature"][2:]))


def test_heartbeat__of_a_node__is_signed_by_its_operator_and_posted_to_the_coordinator(scene, up):
    up.models = json.dumps({"data": [{"id": "small"}, {"id": "large"}, {"id": "small"}]})
    coordinator = Coordinator()
    with serving(coordinator.app()) as url:
        service_id = scene.node(
            "hedda", upstream=up.url, node_coordinator=f"{url}/base/", node_heartbeat_seconds=1, node_max_calls=7
        )
        caller = Caller(scene.world, service_id)
        beat = until(lambda: coordinator.got and coordinator.got[-1])
        assert signer_of(scene, beat, caller.node_id) == caller.state().operator
        report = {name: beat["report"][name] for name in beat["report"] if name not in ("sent_at", "vram_mib")}
        assert report == {
            "node_id": caller.node_id, "models": ["large", "small"], "slots": 7, "busy": 0, "queue": 0,
            "software": "counterfoil/0.1.0",
        }  # fmt: skip
        shown = caller.send("/heartbeat", {}, b"", "GET").json()
        assert signer_of(scene, shown, caller.node_id) == caller.state().operator
        coordinator.status = 500
        metrics = scene.nodes["hedda"].metrics
        until(lambda: 'heartbeats_total{outcome="failed"}' in metrics.text().decode())
        assert caller.call(1).status_code == 200


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b'{"data": 1}', b'{"data": [1]}', b'{"data": [{}]}', b"[" * 100_000, b"\xff"]
)
def test_models_in__of_another_form__are_unknown(body):
    assert models_in(body) is None


def test_models_in__of_hostile_names__leaves_them_out():
    names = ["good", "", "x" * 129, "\x1b[2J", 5, None, *(f"m{i}" for i in range(100))]
    found = models_in(json.dumps({"data": [{"id": name} for name in names]}).encode())
    assert (found[0], len(found) < MAX_MODELS, all(name.isprintable() for name in found)) == ("good", True, True)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda x: st.lists(x) | st.dictionaries(st.text(max_size=4) | st.just("data") | st.just("id"), x),
    )
)
def test_models_in__of_any_json__is_a_list_of_names_or_unknown(value):
    found = models_in(json.dumps(value).encode())
    assert found is None or all(isinstance(name, str) for name in found)


@pytest.mark.parametrize(
    ("program", "mib"),
    [
        ("print('24564\\n8192')", 32756),
        ("print('[N/A]')", None),
        ("print('1'*40)", None),
        ("print('5'); raise SystemExit(9)", None),
    ],
)
def test_vram__as_the_tool_tells_it__is_the_sum_or_unknown(monkeypatch, program, mib):
    monkeypatch.setattr(heartbeat, "_GPU", (sys.executable, "-c", program))
    assert asyncio.run(vram_mib()) == mib


def test_vram__without_the_tool__is_unknown(monkeypatch):
    monkeypatch.setattr(heartbeat, "_GPU", ("/nowhere/nvidia-smi",))
    assert asyncio.run(vram_mib()) is None


def test_vram__of_a_tool_that_hangs__is_unknown_in_time(monkeypatch):
    monkeypatch.setattr(heartbeat, "_GPU", (sys.executable, "-c", "import time; time.sleep(600)"))
    monkeypatch.setattr(heartbeat, "_BOUNDS", heartbeat.Bounds(0.1, 0.1, 1))
    assert asyncio.run(vram_mib()) is None
