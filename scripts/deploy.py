"""Deploy the contracts and write the deployment file that every other part reads: `ape run deploy`.

On a local chain a test token is deployed where none is named. Elsewhere both tokens must be named.
"""

import json
import os
from pathlib import Path
from typing import Any

import click
import rlp
from ape import Contract, project
from ape.api import AccountAPI, ProviderAPI
from ape.cli import account_option
from ape.contracts import ContractInstance
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from scripts._chain import UsageSentence, connected, deployment_path, home_option, network_option

LOCAL_CHAINS = (1337, 31337)
NOBODY = "0x" + "0" * 40
DAY = 24 * 60 * 60
CONTRACTS_BEFORE_COURT = 5


class Deployer:
    """Deploys contracts one after the other and keeps what the deployment file says of each."""

    def __init__(self, account: AccountAPI, provider: ProviderAPI) -> None:
        self.account = account
        self.provider = provider
        self.contracts: dict[str, dict[str, Any]] = {}

    def deploy(self, name: str, **arguments: Any) -> ContractInstance:  # noqa: ANN401
        """Deploy one contract. The arguments' order is the constructor's."""
        contract = self.account.deploy(project.get_contract(name), *arguments.values())
        receipt = contract.creation_metadata.receipt if contract.creation_metadata else None
        if receipt is None:
            raise UsageSentence(f"{name} was sent, but its receipt cannot be found; look at the node and try again")
        code = self.provider.get_code(contract.address)
        self.contracts[name] = {
            "address": str(contract.address),
            "arguments": {key: str(value) for key, value in arguments.items()},
            "block": receipt.block_number,
            "block_hash": "0x" + bytes(receipt.block.hash).hex(),
            "code_hash": "0x" + keccak(bytes(code)).hex(),
            "transaction": receipt.txn_hash,
        }
        click.echo(f"{name:18} {contract.address}  block {receipt.block_number}")
        return contract

    def address_after(self, deployments: int) -> str:
        """Where the contract will be that this account deploys after so many others."""
        nonce = self.account.nonce + deployments
        raw = keccak(rlp.encode([bytes.fromhex(str(self.account.address)[2:]), nonce]))[12:]
        return str(to_checksum_address(raw))

    def write(self, home: Path) -> Path:
        """Write the deployment file, whole or not at all."""
        genesis = self.provider.get_block(0)
        content = {
            "version": 1,
            "chain_id": self.provider.chain_id,
            "genesis_hash": "0x" + bytes(genesis.hash).hex(),
            "contracts": self.contracts,
        }
        path = deployment_path(home, self.provider.chain_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
        os.replace(partial, path)  # noqa: PTH105
        return path


def refuse_overwrite(path: Path, provider: ProviderAPI) -> None:
    """Stop where the chain still runs what the file names: it would be lost."""
    if not path.exists():
        return
    registry = json.loads(path.read_text())["contracts"]["NodeRegistry"]["address"]
    if bytes(provider.get_code(registry)):
        raise UsageSentence(f"{path} names contracts that this chain runs; move it away to deploy others")


def token(name: str | None, deployer: Deployer, provider: ProviderAPI) -> ContractInstance:
    """The token of that address, or a new test token on a local chain."""
    if name:
        return Contract(name)
    if provider.chain_id not in LOCAL_CHAINS:
        raise UsageSentence("name the tokens with --stake-token and --payment-token: this is not a local chain")
    return deployer.deploy("TestToken")


def deploy_all(deployer: Deployer, stake: str, payment: str, court: str, numbers: dict[str, int]) -> None:
    """Deploy the contracts in the order in which they name each other."""
    registry = deployer.deploy(
        "NodeRegistry",
        stake_token=stake,
        min_stake=numbers["min_stake"],
        stake_per_slot=numbers["stake_per_slot"],
        unbonding_period=numbers["unbonding_period"],
        court=court,
    )
    manager = deployer.deploy(
        "SessionManager",
        payment_token=payment,
        registry=registry.address,
        challenge_period=numbers["challenge_period"],
        max_duration=numbers["max_duration"],
        max_snapshot_age=numbers["max_snapshot_age"],
    )
    reputation = deployer.deploy("ReputationLedger", session_manager=manager.address)
    deployer.deploy("ExperienceLedger", session_manager=manager.address)
    deployer.deploy(
        "RoutingLens", registry=registry.address, session_manager=manager.address, reputation=reputation.address
    )


def deploy_court(deployer: Deployer, court: str, arbiter: str, numbers: dict[str, int]) -> None:
    """Deploy the court to the address that the registry was told."""
    deployed = deployer.deploy(
        "DisputeCourt",
        registry=deployer.contracts["NodeRegistry"]["address"],
        session_manager=deployer.contracts["SessionManager"]["address"],
        arbiter=arbiter,
        bond=numbers["bond"],
        dispute_window=numbers["dispute_window"],
        resolve_window=numbers["resolve_window"],
    )
    if deployed.address != court:
        raise UsageSentence(
            f"the court is at {deployed.address}, and the registry was told {court}: something else was sent from this "
            "account in between; deploy again from an account that nothing else uses"
        )


@click.command()
@account_option()
@click.option("--stake-token", help="Address of the token that operators stake.")
@click.option("--payment-token", help="Address of the token that sessions are paid in; the stake token by default.")
@click.option("--arbiter", help="Who decides disputes first; the deployer by default.")
@click.option("--bond", default=50_000_000, show_default=True, help="What a dispute costs if it is refused.")
@click.option("--dispute-window", default=2 * DAY, show_default=True, help="Seconds.")
@click.option("--resolve-window", default=14 * DAY, show_default=True, help="Seconds.")
@click.option("--no-court", is_flag=True, help="Deploy without a court: nobody can ever slash.")
@click.option(
    "--min-stake",
    default=1_000_000_000,
    show_default=True,
    help="What a routable node stakes, in base units.",
)
@click.option("--stake-per-slot", default=500_000_000, show_default=True, help="Stake for one session at a time.")
@click.option("--unbonding-period", default=7 * DAY, show_default=True, help="Seconds.")
@click.option("--challenge-period", default=DAY // 24, show_default=True, help="Seconds.")
@click.option("--max-duration", default=DAY, show_default=True, help="Seconds.")
@click.option("--max-snapshot-age", default=128, show_default=True, help="Blocks, 1 to 256.")
@home_option
@network_option
def cli(
    account: AccountAPI,
    home: Path,
    network: str,
    stake_token: str | None,
    payment_token: str | None,
    arbiter: str | None,
    no_court: bool,
    **numbers: int,
) -> None:
    """Deploy the registry, the session manager, both ledgers, the lens and the court, and write the deployment file."""
    with connected(network) as provider:
        refuse_overwrite(deployment_path(home, provider.chain_id), provider)
        deployer = Deployer(account, provider)
        stake = token(stake_token, deployer, provider)
        payment = Contract(payment_token) if payment_token else stake
        court = NOBODY if no_court else deployer.address_after(CONTRACTS_BEFORE_COURT)
        deploy_all(deployer, stake.address, payment.address, court, numbers)
        if not no_court:
            deploy_court(deployer, court, arbiter or str(account.address), numbers)
        click.echo(f"wrote {deployer.write(home)}")
