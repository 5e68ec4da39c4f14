"""Set the demo's stage: chain, contracts, funded accounts, registered nodes, index and node servers."""

import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

from eth_account.signers.local import LocalAccount

from counterfoil.chain.connection import Chain, connect
from counterfoil.chain.contracts import NodeRegistry, SessionManager, Token, Write
from counterfoil.chain.sender import Sender
from counterfoil.demo.cast import (
    AGENTS,
    MNEMONIC,
    OPERATORS,
    TOKEN,
    agent_account,
    operator_account,
    user_account,
)
from counterfoil.demo.nodes import BIN, start_nodes
from counterfoil.demo.processes import Processes, answers, free_ports
from indexer.errors import UserError
from indexer.settings import Settings

WALLET = 10_000 * TOKEN
UNLIMITED = 2**255
CHAIN_ID = 31337
PACKAGES = Path("node_modules") / "@foundry-rs"


@dataclass(frozen=True, slots=True)
class Stage:
    """What was set up."""

    settings: Settings
    chain: Chain
    chain_port: int
    node_ports: tuple[int, ...]


def anvil_binary() -> str:
    """Anvil, from this checkout or from PATH. Raises UserError when there is none."""
    machine = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(
        platform.machine().lower()
    )
    local = PACKAGES / f"anvil-{platform.system().lower()}-{machine}" / "bin" / "anvil"
    found = str(local.resolve()) if local.is_file() else shutil.which("anvil")
    if found is None:
        raise UserError("There is no anvil: install it into this checkout with `make setup`.")
    return found


def start_chain(processes: Processes, port: int) -> None:
    """Start anvil with one block per transaction."""
    accounts = str(1 + len(OPERATORS) + AGENTS + 1)
    command = [anvil_binary(), "--port", str(port), "--accounts", accounts, "--mnemonic", MNEMONIC, "--silent"]
    processes.start("chain", command)
    processes.wait("chain", lambda: answers(port))


def deploy(processes: Processes, settings: Settings) -> None:
    """Deploy by the same script as anybody would."""
    command = [str(BIN / "ape"), "run", "deploy", "--network", settings.rpc_url, "--account", "TEST::0"]
    processes.run("deploy", [*command, "-v", "WARNING", "--home", str(settings.home)])


def register(chain: Chain, ports: tuple[int, ...]) -> None:
    """Stake, register and list every operator's node."""
    registry = NodeRegistry(chain)
    token = Token(chain, chain.deployment.contracts["TestToken"].address)
    for position, operator in enumerate(OPERATORS):
        account = operator_account(position)
        fund(chain, token, account, registry.address, operator.stake)
        listings = [
            registry.list_service(position + 1, category, price, "") for category, price in operator.services.items()
        ]
        endpoint = f"http://127.0.0.1:{ports[position]}"
        send_all(chain, account, [registry.register_node(endpoint, operator.stake), *listings])


def fund_agents(chain: Chain) -> None:
    """Give every agent, and the demo's user, tokens, and let the session manager take deposits."""
    token = Token(chain, chain.deployment.contracts["TestToken"].address)
    for account in (*map(agent_account, range(AGENTS)), user_account()):
        fund(chain, token, account, SessionManager(chain).address, WALLET)


def fund(chain: Chain, token: Token, account: LocalAccount, spender: str, amount: int) -> None:
    """Mint tokens for an account, and let one contract take them."""
    send_all(chain, account, [token.mint(account.address, amount), token.approve(spender, UNLIMITED)])


def send_all(chain: Chain, account: LocalAccount, writes: list[Write]) -> None:
    """Send one account's writes in order."""
    sender = Sender(chain, account)
    for write in writes:
        sender.send(write)


def set_up(processes: Processes, home: Path, chain_port: int) -> Stage:
    """Set the whole stage; `home` is empty and holds everything afterwards."""
    settings = Settings(
        home=home,
        rpc_url=f"http://127.0.0.1:{chain_port}",
        database=f"sqlite:///{home / 'index.sqlite'}",
        deployment=home / "deployments" / f"{CHAIN_ID}.json",
        poll_seconds=0.1,
        agent_allow_private="yes",
    )
    start_chain(processes, chain_port)
    deploy(processes, settings)
    chain = connect(settings)
    ports = free_ports(len(OPERATORS))
    register(chain, ports)
    fund_agents(chain)
    processes.start("index", [str(BIN / "counterfoil"), "index", "run", "--follow"])
    start_nodes(processes, ports)
    return Stage(settings, chain, chain_port, ports)
