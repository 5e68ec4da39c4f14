"""Compare what a chain runs with what these sources compile to: `ape run verify_deployment`.

Each contract's code must be the compiled one followed by its immutables, which are the constructor's arguments in
their order (a court has its own list); and each argument that names another contract must name the deployed one. A
registry's court must be the deployment's or nobody: whoever it is can take every stake.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from ape import project
from ape.api import ProviderAPI
from eth_utils.crypto import keccak

from scripts._chain import UsageSentence, connected, deployment_path, home_option, network_option

NOBODY = "0x" + "0" * 40

LINKS = {
    "registry": "NodeRegistry",
    "session_manager": "SessionManager",
    "reputation": "ReputationLedger",
    "stake_token": "TestToken",
    "payment_token": "TestToken",
    "court": "DisputeCourt",
}
IMMUTABLES = {
    "DisputeCourt": ["registry", "session_manager", "stake_token", "bond", "dispute_window", "resolve_window"],
}


def immutables(name: str, inputs: list[str], contracts: dict[str, Any]) -> bytes:
    """What a contract with the arguments of the deployment file keeps behind its code, a word each."""
    known = contracts["NodeRegistry"]["arguments"] | contracts[name]["arguments"]
    values = [known[immutable] for immutable in IMMUTABLES.get(name, inputs)]
    words = (bytes.fromhex(value[2:]) if value.startswith("0x") else int(value).to_bytes(32, "big") for value in values)
    return b"".join(word.rjust(32, b"\0") for word in words)


def faults(name: str, entry: dict[str, Any], provider: ProviderAPI, contracts: dict[str, Any]) -> Iterator[str]:
    """What is wrong with one contract, in words."""
    container = project.get_contract(name)
    bytecode = container.contract_type.runtime_bytecode
    compiled = bytes.fromhex(str(bytecode.bytecode).removeprefix("0x")) if bytecode else b""
    inputs = container.contract_type.constructor.inputs
    code = bytes(provider.get_code(entry["address"]))
    if not code:
        yield f"nothing is deployed at {entry['address']}"
        return
    if code[: len(compiled)] != compiled:
        yield "the code on chain is not what these sources compile to"
    elif code[len(compiled) :] != immutables(name, [str(i.name) for i in inputs], contracts):
        yield "the constructor's arguments on chain are not those of the deployment file"
    if "0x" + keccak(code).hex() != entry["code_hash"]:
        yield "the code hash is not that of the deployment file"
    for argument, target in LINKS.items():
        linked = entry["arguments"].get(argument)
        if linked and target in contracts and linked != contracts[target]["address"]:
            yield f"{argument} is {linked}, and the deployment's {target} is {contracts[target]['address']}"
    court = entry["arguments"].get("court", NOBODY)
    if court != NOBODY and "DisputeCourt" not in contracts:
        yield f"court is {court}, which can take every stake, and the deployment has no DisputeCourt"


@click.command()
@home_option
@network_option
def cli(home: Path, network: str) -> None:
    """Verify every contract of the chain's deployment file. Exit code 1: one differs. Exit code 2: nothing to check."""
    with connected(network) as provider:
        path = deployment_path(home, provider.chain_id)
        if not path.exists():
            raise UsageSentence(f"there is no {path}; deploy with `ape run deploy` or name the folder with --home")
        contracts = json.loads(path.read_text())["contracts"]
        found = {name: list(faults(name, entry, provider, contracts)) for name, entry in contracts.items()}
    for name, sentences in found.items():
        click.echo(f"{name:18} {contracts[name]['address']}  {'; '.join(sentences) or 'verified'}")
    sys.exit(1 if any(found.values()) else 0)
