"""One chain at one RPC, with the deployment that is on it: checked once, then asked."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError
from web3 import Web3
from web3.contract import Contract
from web3.exceptions import (
    BadFunctionCallOutput,
    BadResponseFormat,
    BlockNotFound,
    ContractLogicError,
    Web3Exception,
    Web3RPCError,
)
from web3.types import BlockData

from counterfoil.chain.artifacts import artifact
from counterfoil.chain.errors import ChainError, PrunedError, RevertedError
from counterfoil.chain.provider import BoundedProvider
from counterfoil.texts import printable
from indexer.deployment import Deployment, load_deployment
from indexer.errors import DeploymentError, WrongChainError
from indexer.settings import Settings

_ERROR_SELECTOR = "0x08c379a0"
_SHOWN = 200
# What nodes say when they do not hold a state: geth, erigon, nethermind, reth, anvil.
_PRUNED = re.compile(
    r"missing trie node|pruned|state .*not available|historical state|no state available|blockoutofrange|"
    r"block height \d+ is out|old data not available|distance to target block exceeds",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A block's number, lower-case hash and time (seconds)."""

    number: int
    hash: str
    timestamp: int


class Chain:
    """A chain reached through one RPC. Raises ChainError and WrongChainError, each with the remedy."""

    def __init__(self, provider: BoundedProvider, deployment: Deployment) -> None:
        self.provider = provider
        self.deployment = deployment
        self.web3 = Web3(provider)

    @cached_property
    def chain_id(self) -> int:
        """The id that the RPC claims."""
        with asking(f"The chain id at {self.provider.shown}"):
            return int(self.web3.eth.chain_id)

    def check(self) -> None:
        """Make sure that this is the deployment's chain: the same id and the same first block."""
        wanted = self.deployment
        if self.chain_id != wanted.chain_id:
            raise WrongChainError(
                f"The RPC at {self.provider.shown} serves chain {self.chain_id}, the deployment file names chain "
                f"{wanted.chain_id}: name the right one with --rpc or --deployment."
            )
        if self.block(0).hash != wanted.genesis_hash:
            raise WrongChainError(
                f"The RPC at {self.provider.shown} serves another chain with the id {self.chain_id} than the "
                "deployment file names (its first block differs): name the right one with --rpc or --deployment."
            )

    def contract(self, name: str) -> Contract:
        """A contract of the deployment. Raises DeploymentError when the file does not name it."""
        if name not in self.deployment.contracts:
            raise DeploymentError(f"The deployment file names no {name}: deploy again with `ape run deploy`.")
        return self.contract_at(name, self.deployment.contracts[name].address)

    def contract_at(self, name: str, address: str) -> Contract:
        """A contract with the ABI of `name` at any address."""
        abi = cast(Any, artifact(name).abi)
        return self.web3.eth.contract(address=Web3.to_checksum_address(address), abi=abi)

    def block(self, number: int) -> Block:
        """A block by its number. Raises ChainError when the chain has none."""
        return self._block(number, f"Block {number}")

    def head(self) -> Block:
        """The latest block."""
        return self._block("latest", "The latest block")

    def final(self, tag: Literal["finalized", "safe"]) -> Block:
        """The newest block that the chain calls so. Raises ChainError where it names none."""
        return self._block(tag, f"The {tag} block")

    def call(self, function: Any, at: int | None = None, gas: int | None = None) -> Any:  # noqa: ANN401
        """Call a view as of a block's end (None: the latest), with so much gas (None: the RPC's own limit)."""
        transaction = {} if gas is None else {"gas": gas}
        with asking(f"{function.fn_name}{_at(at)}"):
            return function.call(cast(Any, transaction), block_identifier="latest" if at is None else at)

    def code(self, address: str) -> bytes:
        """The code of an account, empty where it has none."""
        with asking(f"The code of {address}"):
            return bytes(self.web3.eth.get_code(Web3.to_checksum_address(address)))

    def balance(self, address: str) -> int:
        """What an account holds of the chain's own coin, in wei."""
        with asking(f"The balance of {address}"):
            return int(self.web3.eth.get_balance(Web3.to_checksum_address(address)))

    def close(self) -> None:
        """Close the connections."""
        self.provider.close()

    def _block(self, which: Any, what: str) -> Block:  # noqa: ANN401
        try:
            with asking(what):
                found: BlockData = self.web3.eth.get_block(which)
                return Block(int(found["number"]), "0x" + bytes(found["hash"]).hex(), int(found["timestamp"]))
        except BlockNotFound as error:
            raise ChainError(
                f"{what} is not on the chain at {self.provider.shown}: wait until it is, or use another RPC."
            ) from error


def connect(settings: Settings) -> Chain:
    """Load the deployment, reach the RPC and check that they belong together."""
    deployment = load_deployment(settings.deployment_path())
    provider = BoundedProvider(
        settings.rpc_urls()[0], seconds=settings.request_seconds, max_bytes=settings.max_response_bytes
    )
    chain = Chain(provider, deployment)
    try:
        chain.check()
    except BaseException:
        chain.close()
        raise
    return chain


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Turn web3's errors into sentences about `what`. BlockNotFound passes."""
    try:
        yield
    except (ChainError, BlockNotFound):
        raise
    except ContractLogicError as error:
        raise RevertedError(what, revert_reason(error)) from error
    except BadFunctionCallOutput as error:
        raise ChainError(
            f"{what} gave no answer of the expected form: the deployment file may be of another chain, or the block "
            "is before the contract was deployed."
        ) from error
    except Web3RPCError as error:
        raise _rpc_error(what, error) from error
    except (Web3Exception, BadResponseFormat, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ChainError(
            f"{what} cannot be read from the RPC's answer ({type(error).__name__}): use another RPC."
        ) from error


def revert_reason(error: ContractLogicError) -> str:
    """The reason string of a revert, printable: from its data where there is any, else from the RPC's words."""
    data = error.data
    if isinstance(data, str) and data.startswith(_ERROR_SELECTOR):
        try:
            return printable(str(decode(["string"], bytes.fromhex(data[10:]))[0])[:_SHOWN])
        except (ValueError, DecodingError):
            return ""
    message = str(error.message or "")
    return printable(message.removeprefix("execution reverted").removeprefix(": ")[:_SHOWN])


def _rpc_error(what: str, error: Web3RPCError) -> ChainError:
    answer = error.rpc_response.get("error") if error.rpc_response else None
    message = answer.get("message") if isinstance(answer, dict) else error.message
    words = printable(" ".join(str(message).split())[:_SHOWN])
    if _PRUNED.search(words):
        return PrunedError(f"{what}: the RPC no longer holds that state ({words}); use an archive node with --rpc.")
    return ChainError(f"{what}: the RPC refused with {words!r}; check the RPC, or use another with --rpc.")


def _at(block: int | None) -> str:
    return "" if block is None else f" at block {block}"
