"""Interfaces and artifacts in the repository are what the compiler gives now."""

import json

import pytest

from scripts.export_abi import ARTIFACTS, CONTRACTS, EXPORTED, borrowed_structs, exports

LAYOUTS = {
    "NodeRegistry": ["owners", "stakes", "listings"],
    "SessionManager": ["buyers", "sellers", "states", "signers", "latest_draw", "credit_of", "active_sessions"],
    "ReputationLedger": ["tallies", "weights", "scores"],
    "ExperienceLedger": ["attested", "spent"],
    "RoutingLens": [],
    "DisputeCourt": ["arbiter", "pending_arbiter", "dispute_of", "credit_of", "session_of", "cases"],
}


@pytest.mark.rule("MOD-11")
def test_exports__of_the_sources__are_the_committed_files():
    stale = [path.name for path, content in exports() if not path.exists() or path.read_text() != content]
    assert stale == [], "run: python scripts/export_abi.py"


def test_borrowed_structs__of_a_contract__are_those_of_modules_that_its_functions_name():
    found = list(borrowed_structs((CONTRACTS / "SessionManager.vy").read_text()))
    assert [struct.splitlines()[:2] for struct in found] == [
        ["struct Choice:", "    policy: uint8"],
        ["struct Authorization:", "    amount: uint256"],
    ]
    assert list(borrowed_structs("from .modules import choices\n\n# choices.Choice is not used\n")) == []


def test_artifacts__in_the_folder__are_the_exported_ones_alone():
    names = {f"{name.rsplit('/', maxsplit=1)[-1]}.json" for name in EXPORTED}
    assert {path.name for path in ARTIFACTS.glob("*.json")} == names


@pytest.mark.rule("MOD-11")
def test_artifacts__of_every_contract__have_the_bytecode_that_ape_tests(project):
    for path in sorted(ARTIFACTS.glob("*.json")):
        artifact = json.loads(path.read_text())
        deployed = project.contracts[artifact["contract"]].contract_type.deployment_bytecode.bytecode
        assert deployed.removeprefix("0x") == artifact["bytecode"].removeprefix("0x"), path.name


@pytest.mark.rule("MOD-11")
def test_storage_layouts__of_the_contracts__hold_the_packed_words_and_fit():
    for name, variables in LAYOUTS.items():
        artifact = json.loads((ARTIFACTS / f"{name}.json").read_text())
        layout = artifact["storage_layout"].get("storage_layout", {})
        assert set(variables) <= set(layout), name
        assert len(artifact["runtime_bytecode"]) // 2 - 1 <= 24_576, name
