"""Compare what a chain runs with what these sources compile to: `ape run verify_deployment`.

Each contract's code must be the compiled one followed by its immutables, which are the constructor's arguments in
their order; and each argument that names another contract must name the deployed one.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from ape import project
from ape.api import ProviderAPI
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from scripts._chain import UsageSentence, connected, deployment_path, home_option, network_option

LINKS = {
    "registry": "NodeRegistry",
    "session_manager": "SessionManager",
    "reputation": "ReputationLedger",
    "stake_token": "TestToken",
    "payment_token": "TestToken",
}


def encoded(abi: Any, arguments: dict[str, str]) -> bytes:  # noqa: ANN401
    """The immutables that a constructor with these arguments leaves behind the code."""
    inputs = abi.constructor.inputs
    values = [int(arguments[i.name]) if str(i.type).startswith("uint") else arguments[i.name] for i in inputs]
    return encode([str(i.type) for i in inputs], values)


def faults(name: str, entry: dict[str, Any], provider: ProviderAPI, contracts: dict[str, Any]) -> Iterator[str]:
    """What is wrong with one contract, in words."""
    container = project.get_contract(name)
    bytecode = container.contract_type.runtime_bytecode
    compiled = bytes.fromhex(str(bytecode.bytecode).removeprefix("0x")) if bytecode else b""
    code = bytes(provider.get_code(entry["address"]))
    if not code:
        yield f"nothing is deployed at {entry['address']}"
        return
    if code[: len(compiled)] != compiled:
        yield "the code on chain is not what these sources compile to"
    elif code[len(compiled) :] != encoded(container.contract_type, entry["arguments"]):
        yield "the constructor's arguments on chain are not those of the deployment file"
    if "0x" + keccak(code).hex() != entry["code_hash"]:
        yield "the code hash is not that of the deployment file"
    for argument, target in LINKS.items():
        linked = entry["arguments"].get(argument)
        if linked and target in contracts and linked != contracts[target]["address"]:
            yield f"{argument} is {linked}, and the deployment's {target} is {contracts[target]['address']}"


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
