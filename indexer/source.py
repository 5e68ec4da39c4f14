"""The chain as one deployment needs it: verified ranges of headers and logs. Trusts no answer that it can check.

A log counts only where its block hash is that of the header we hold. Where a header's bloom may hold one of our
events and the answer has none of that kind, the block's receipts are asked, and they count only when their own bloom
is the header's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eth_hash.auto import keccak

from indexer.chain import (
    Header,
    Log,
    bloom_bits,
    bloom_of,
    parse_data,
    parse_hash,
    parse_header,
    parse_list,
    parse_log,
    parse_object,
    parse_quantity,
)
from indexer.decode import DECODERS
from indexer.deployment import DeployedContract, Deployment
from indexer.errors import BadAnswerError, BehindError, ForkError, RangeTooLargeError, WrongChainError
from indexer.rpc import Rpc

VERIFIED_ANSWER = 100
"""From this many logs on, the last block of an answer is asked again: a node may have cut the answer there."""

_MAX_CODE = 2 + 2 * 1_048_576
Kind = tuple[str, str]
"""Address and first topic of a log."""


@dataclass(frozen=True, slots=True)
class BlockRange:
    """Consecutive headers, and all our logs in them by block and index."""

    headers: tuple[Header, ...]
    logs: tuple[Log, ...]


class Source:
    """Asks one node about one deployment."""

    def __init__(self, rpc: Rpc, deployment: Deployment, *, thorough: bool = False) -> None:
        """Be `thorough` to read the receipts of every block that may hold an event, whatever the log index says."""
        self._rpc = rpc
        self._thorough = thorough
        self._deployment = deployment
        addresses = deployment.addresses()
        self._kinds: dict[Kind, int] = {
            (address, topic): _bits(address) | _bits(topic)
            for name, address in addresses.items()
            for topic in DECODERS[name]
        }
        self._filter = {
            "address": sorted(set(addresses.values())),
            "topics": [sorted({topic for _, topic in self._kinds})],
        }

    def check_identity(self) -> None:
        """Compare chain id, genesis, deployment blocks and code with the deployment file.

        Raises WrongChainError naming what differs, BehindError where the node lacks a block.
        """
        contracts = self._deployment.indexed()
        answers = self._rpc.batch(
            [("eth_chainId", []), ("eth_getBlockByNumber", ["0x0", False])]
            + [("eth_getBlockByNumber", [hex(contract.block), False]) for contract in contracts]
            + [("eth_getCode", [contract.address, "latest"]) for contract in contracts]
        )
        chain_id, genesis, *rest = answers
        self._check_chain(parse_quantity(chain_id, "chain id"), genesis)
        for contract, block, code in zip(contracts, rest, rest[len(contracts) :], strict=False):
            _check_contract(contract, block, code)

    def head(self) -> Header:
        """Give the newest block."""
        return self._named("latest")

    def finalized(self) -> Header | None:
        """Give the newest final block, None where the node does not know one."""
        try:
            answer = self._rpc.call("eth_getBlockByNumber", ["finalized", False])
        except BadAnswerError:
            return None  # chains without finality refuse the word
        return None if answer is None else parse_header(answer)

    def header(self, number: int) -> Header:
        """Give one block; BehindError when the node does not have it."""
        return self.headers(number, number)[0]

    def headers(self, first: int, last: int) -> tuple[Header, ...]:
        """Give consecutive blocks, linked by their parent hashes."""
        answers = self._rpc.batch([("eth_getBlockByNumber", [hex(n), False]) for n in range(first, last + 1)])
        headers: list[Header] = []
        for number, answer in enumerate(answers, first):
            if answer is None:
                raise BehindError(f"The node does not have block {number} yet; waiting for it.")
            header = parse_header(answer)
            if header.number != number:
                raise BadAnswerError(f"The node gave block {header.number} for {number}; try another RPC address.")
            if headers and header.parent_hash != headers[-1].hash:
                raise ForkError(f"Block {number} does not follow block {number - 1}: the chain moved; asking again.")
            headers.append(header)
        return tuple(headers)

    def fetch(self, first: int, last: int) -> BlockRange:
        """Give a verified range; RangeTooLargeError when the node wants a smaller one."""
        headers = self.headers(first, last)
        try:
            logs = self._logs(first, last)
        except RangeTooLargeError:
            if first < last:
                raise
            return BlockRange(headers, tuple(self._verified_logs(headers)[first]))
        _check_hashes(headers, logs)
        by_block: dict[int, list[Log]] = {}
        for log in logs:
            by_block.setdefault(log.block_number, []).append(log)
        by_block.update(self._verified_logs(self._doubtful(headers, by_block, len(logs))))
        complete = [log for header in headers for log in by_block.get(header.number, ())]
        return BlockRange(headers, tuple(complete))

    def _named(self, tag: str) -> Header:
        answer = self._rpc.call("eth_getBlockByNumber", [tag, False])
        if answer is None:
            raise BehindError(f"The node has no {tag} block yet; waiting for it.")
        return parse_header(answer)

    def _check_chain(self, chain_id: int, genesis: object) -> None:
        wanted = self._deployment
        if chain_id != wanted.chain_id:
            raise WrongChainError(
                f"The node is on chain {chain_id}, the deployment on chain {wanted.chain_id}: "
                "correct COUNTERFOIL_RPC_URL or COUNTERFOIL_DEPLOYMENT."
            )
        if genesis is None:
            raise BehindError("The node does not have the genesis block; try another RPC address.")
        if parse_header(genesis).hash != wanted.genesis_hash:
            raise WrongChainError(_restarted("its genesis block differs"))

    def _logs(self, first: int, last: int) -> list[Log]:
        wanted = {**self._filter, "fromBlock": hex(first), "toBlock": hex(last)}
        logs = self._ours(parse_list(self._rpc.call("eth_getLogs", [wanted]), "logs"))
        if any(not first <= log.block_number <= last for log in logs):
            raise BadAnswerError("The node gave logs of blocks that were not asked; try another RPC address.")
        return logs

    def _ours(self, entries: Iterable[object]) -> list[Log]:
        """Read logs, drop removed and foreign ones and repetitions, and sort them."""
        places: dict[tuple[int, int], Log] = {}
        for entry in entries:
            log = parse_log(entry)
            if log is None or not log.topics or (log.address, log.topics[0]) not in self._kinds:
                continue
            if places.setdefault((log.block_number, log.log_index), log) != log:
                raise BadAnswerError("The node gave two different logs for one place; try another RPC address.")
        return [places[place] for place in sorted(places)]

    def _doubtful(self, headers: Sequence[Header], by_block: dict[int, list[Log]], count: int) -> list[Header]:
        """List the blocks whose answer may lack logs.

        Those are the blocks whose bloom may hold a kind of event that the answer does not have there. When there is
        one, or the answer is long, it may have been cut: then the last block with logs is in doubt too.
        """
        known = {} if self._thorough else by_block
        doubtful = {header.number for header in headers if self._lacks_a_kind(header, known.get(header.number, []))}
        if by_block and (doubtful or count >= VERIFIED_ANSWER):
            doubtful.add(max(by_block))
        return [header for header in headers if header.number in doubtful]

    def _lacks_a_kind(self, header: Header, logs: Sequence[Log]) -> bool:
        held = {(log.address, log.topics[0]) for log in logs}
        return any(kind not in held and header.bloom & bits == bits for kind, bits in self._kinds.items())

    def _verified_logs(self, headers: Sequence[Header]) -> dict[int, list[Log]]:
        """Read all logs of these blocks, check that they are all of them, and keep ours."""
        try:
            answers = self._rpc.batch([("eth_getBlockReceipts", [hex(header.number)]) for header in headers])
            entries = [_logs_of_receipts(answer, header) for answer, header in zip(answers, headers, strict=True)]
        except BadAnswerError:  # a node without that method: everything that it logged in the block
            answers = self._rpc.batch([("eth_getLogs", [{"blockHash": header.hash}]) for header in headers])
            entries = [parse_list(answer, "logs") for answer in answers]
        for header, block_entries in zip(headers, entries, strict=True):
            _check_complete(header, block_entries)
        return {header.number: self._ours(some) for header, some in zip(headers, entries, strict=True)}


def _logs_of_receipts(answer: object, header: Header) -> list[object]:
    if answer is None:
        raise BehindError(f"The node has no receipts of block {header.number} yet; waiting for them.")
    receipts = [parse_object(entry, "receipt") for entry in parse_list(answer, "receipts")]
    return [entry for receipt in receipts for entry in parse_list(receipt.get("logs"), "receipt's logs")]


def _check_complete(header: Header, entries: Iterable[object]) -> None:
    logs = [log for entry in entries if (log := parse_log(entry)) is not None]
    if any(log.block_hash != header.hash for log in logs):
        raise ForkError(f"The receipts of block {header.number} are of another fork; asking again.")
    if bloom_of(logs) != header.bloom:
        raise BadAnswerError(
            f"The node's logs of block {header.number} are not what its header announces; try another RPC address."
        )


def _bits(text: str) -> int:
    return bloom_bits(bytes.fromhex(text[2:]))


def _check_hashes(headers: Sequence[Header], logs: Iterable[Log]) -> None:
    first = headers[0].number
    for log in logs:
        if log.block_hash != headers[log.block_number - first].hash:
            raise ForkError(f"The logs of block {log.block_number} are of another fork; asking again.")


def _check_contract(contract: DeployedContract, block: object, code: object) -> None:
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
