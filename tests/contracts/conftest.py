"""What all contract tests share: the tools on PATH, and Ape's project with fresh bytecode on anvil.

Ape's and boa's pytest plugins are switched off (pyproject.toml): both would start themselves for every test of the
repository. The fixtures here do what is needed of them, and only the tests that ask for `chain` start a chain.
"""

import hashlib
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build"


def _prepare_environment():
    """Let plain `pytest` work as under make: compiler and anvil on PATH, Ape's data in the checkout."""
    anvils = sorted(str(path) for path in (ROOT / "node_modules" / "@foundry-rs").glob("anvil-*/bin"))
    folders = [*anvils, str(Path(sys.executable).parent)]
    os.environ["PATH"] = os.pathsep.join([*folders, os.environ.get("PATH", "")])
    os.environ.setdefault("APE_DATA_FOLDER", str(ROOT / ".ape"))


_prepare_environment()


def pytest_configure(config):
    """Know the marker that names the rules of docs/specification.md which a test asserts."""
    config.addinivalue_line("markers", "rule(*ids): the rules of docs/specification.md that the test asserts")


def sources_digest():
    """The digest of every contract source, modules and interfaces included."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "contracts").rglob("*.vy*")):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@pytest.fixture(scope="session")
def project():
    """Ape's project. Ape recompiles a changed file only, not those that import it: any change compiles everything."""
    from ape import Project
    from ape.logging import logger

    logger.set_level("ERROR")
    project = Project(ROOT)
    stamp, digest = BUILD / "sources.sha256", sources_digest()
    if not stamp.exists() or stamp.read_text() != digest:
        project.load_contracts(use_cache=False)
        BUILD.mkdir(exist_ok=True)
        stamp.write_text(digest)
    return project


def _nothing(*_args, **_kwargs):
    """What is done instead of a trace."""


@pytest.fixture(scope="session")
def chain(project):
    """Ape's chain manager, connected to an anvil of this session on a free port."""
    import ape
    from ape.api import ReceiptAPI
    from ape.contracts.base import ContractMethodHandler
    from ape_ethereum.provider import Web3Provider
    from ape_ethereum.trace import Trace

    with pytest.MonkeyPatch.context() as patch:
        # Ape traces every revert to draw it: half a second for each one that a test expects.
        patch.setattr("ape.exceptions._get_ape_traceback_from_tx", _nothing)
        patch.setattr(Trace, "show", _nothing)
        # It also traces what succeeded, to print what a contract might print.
        patch.setattr("ape_ethereum.provider._post_send_transaction", _nothing)
        # What it asks before and after every call cannot change here: that there is a contract, that a transaction
        # with a receipt counts, how much gas a block has, and which proxy leads to this machine.
        patch.setattr(ContractMethodHandler, "_validate_is_contract", _nothing)
        patch.setattr(ReceiptAPI, "_await_sender_nonce_increment", _nothing)
        patch.setattr("requests.sessions.get_environ_proxies", lambda *_args, **_kwargs: {})
        with ape.networks.parse_network_choice("ethereum:local:foundry"):
            patch.setattr(Web3Provider, "max_gas", ape.chain.provider.max_gas)
            yield ape.chain


@pytest.fixture
def isolated(chain):
    """Undo every transaction of the test."""
    snapshot = chain.snapshot()
    yield
    chain.restore(snapshot)


@pytest.fixture(scope="session")
def world(project, chain):
    """The five contracts with two nodes that serve one category."""
    from tests.contracts.world import World

    return World.deployed(project, chain)
