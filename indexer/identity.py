"""Is this the chain of the deployment file? Asked of a node before it is believed, and again when it acts oddly."""

from indexer.chain import parse_data, parse_hash, parse_header, parse_quantity
from indexer.deployment import DeployedContract, Deployment
from indexer.errors import BehindError, NoHistoryError, RetryableError, WrongChainError
from indexer.keccak import keccak
from indexer.rpc import Rpc

FAR_BELOW = 128
"""From this many blocks below the head on, a block that a node does not have is taken for pruned, not for late."""

_MAX_CODE = 2 + 2 * 1_048_576


def check_identity(rpc: Rpc, deployment: Deployment) -> None:
    """Compare chain id, genesis, deployment blocks and code with the deployment file.

    Raises WrongChainError naming what differs, BehindError where the node lacks a block, NoHistoryError where that
    block is far below its head.
    """
    contracts = deployment.indexed()
    chain_id, head, genesis, *rest = rpc.batch(
        [("eth_chainId", []), ("eth_blockNumber", []), ("eth_getBlockByNumber", ["0x0", False])]
        + [("eth_getBlockByNumber", [hex(contract.block), False]) for contract in contracts]
        + [("eth_getCode", [contract.address, "latest"]) for contract in contracts]
    )
    height = parse_quantity(head, "head")
    _check_chain(deployment, parse_quantity(chain_id, "chain id"), genesis, height)
    for contract, block, code in zip(contracts, rest, rest[len(contracts) :], strict=False):
        _check_contract(contract, block, code, height)


def absent(number: int, head: int) -> RetryableError:
    """Say that a node whose head is `head` does not have a block: not any more, or not yet."""
    if number < head - FAR_BELOW:
        # Without the head's number, so that a growing chain's node says the same each time.
        return NoHistoryError(f"The node does not have block {number}, far below its head; try another RPC address.")
    return BehindError(f"The node does not have block {number} yet; waiting for it.")


def _check_chain(deployment: Deployment, chain_id: int, genesis: object, head: int) -> None:
    if chain_id != deployment.chain_id:
        raise WrongChainError(
            f"The node is on chain {chain_id}, the deployment on chain {deployment.chain_id}: "
            "correct COUNTERFOIL_RPC_URL or COUNTERFOIL_DEPLOYMENT."
        )
    if genesis is None:
        raise absent(0, head)
    if parse_header(genesis).hash != deployment.genesis_hash:
        raise WrongChainError(_restarted("its genesis block differs"))


def _check_contract(contract: DeployedContract, block: object, code: object, head: int) -> None:
    if block is None and contract.block < head - FAR_BELOW:
        raise absent(contract.block, head)
    if block is None:
        raise BehindError(
            f"The node does not have block {contract.block}, where {contract.name} was deployed. Wait until it is "
            "synchronised; if it is a development chain that was restarted, deploy again or run `make demo`."
        )
    if parse_header(block).hash != contract.block_hash:
        raise WrongChainError(_restarted(f"block {contract.block}, where {contract.name} was deployed, differs"))
    found = "0x" + keccak(bytes.fromhex(parse_data(code, "code", _MAX_CODE)[2:])).hex()
    if found != parse_hash(contract.code_hash):
        raise WrongChainError(_restarted(f"the code of {contract.name} differs"))


def _restarted(what: str) -> str:
    return (
        f"The node's chain is not the deployment's: {what}. If it is a development chain that was restarted, move "
        "the old index away and deploy again with `ape run deploy` or `make demo`; otherwise correct "
        "COUNTERFOIL_RPC_URL."
    )
