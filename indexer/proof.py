"""All our logs of a block, proven by the receipts root in its header.

A node without eth_getBlockReceipts is asked for the receipt of each transaction. Where it has neither, or where a
receipt is of a type whose encoding is not known here (a rollup's deposits), the logs are checked against the
header's bloom only, and the run says so once: then one of several logs of one kind in a block could be left out.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

from indexer.chain import (
    Header,
    Log,
    bloom_of,
    parse_data,
    parse_hash,
    parse_header,
    parse_list,
    parse_log,
    parse_object,
)
from indexer.errors import BadAnswerError, BehindError, ForkError, LieError, UnsupportedError
from indexer.receipts import BLOOM_LENGTH, MAX_RECEIPTS, UnknownReceiptError, receipts_root
from indexer.rpc import Rpc

BLOCKS_A_BATCH = 10
"""Receipts of so many blocks are asked for at once; those of one block may be megabytes."""


@dataclass(slots=True)
class Cost:
    """What proving took: blocks proven, JSON-RPC calls, bytes of their answers, and seconds."""

    blocks: int = 0
    calls: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def since(self, before: "Cost") -> "Cost":
        """Give what came after an earlier state of this."""
        return Cost(*(now - then for now, then in zip(astuple(self), astuple(before), strict=True)))

    def add(self, more: "Cost") -> None:
        """Take what another one took into this."""
        self.blocks += more.blocks
        self.calls += more.calls
        self.bytes += more.bytes
        self.seconds += more.seconds


class Prover:
    """Reads and proves blocks of one node."""

    def __init__(self, rpc: Rpc, addresses: Iterable[str], weakened: Callable[[str], None]) -> None:
        self.cost = Cost()
        self._rpc = rpc
        self._addresses = frozenset(addresses)
        self._weakened = weakened
        self._told = False
        self._ways = [self._by_block_receipts, self._by_transaction_receipts, self._by_block_logs]

    def logs(self, headers: Sequence[Header]) -> dict[int, list[Log]]:
        """Give our logs of each of these blocks, in order.

        Raises LieError where the receipts are not those of the header, ForkError where they are of another block.
        """
        begun, received = time.perf_counter(), self._rpc.received
        try:
            return self._read(headers)
        finally:
            self.cost.blocks += len(headers)
            self.cost.bytes += self._rpc.received - received
            self.cost.seconds += time.perf_counter() - begun

    def _read(self, headers: Sequence[Header]) -> dict[int, list[Log]]:
        while True:
            try:
                return self._ways[0](headers)
            except UnsupportedError:
                if len(self._ways) == 1:
                    raise
                del self._ways[0]

    def _batch(self, method: str, params: Sequence[Sequence[object]]) -> list[object]:
        self.cost.calls += len(params)
        return self._rpc.batch([(method, some) for some in params])

    def _by_block_receipts(self, headers: Sequence[Header]) -> dict[int, list[Log]]:
        answers = self._batch("eth_getBlockReceipts", [[hex(header.number)] for header in headers])
        return {header.number: self._proven(header, answer) for header, answer in zip(headers, answers, strict=True)}

    def _by_transaction_receipts(self, headers: Sequence[Header]) -> dict[int, list[Log]]:
        blocks = self._batch("eth_getBlockByNumber", [[hex(header.number), False] for header in headers])
        proven = {}
        for header, block in zip(headers, blocks, strict=True):
            if block is None:
                raise _missing(header)
            receipts = self._batch("eth_getTransactionReceipt", [[tx] for tx in _transactions(header, block)])
            proven[header.number] = self._proven(header, None if None in receipts else receipts)
        return proven

    def _by_block_logs(self, headers: Sequence[Header]) -> dict[int, list[Log]]:
        self.tell("The node gives no receipts: the logs of a block are checked against the bloom of its header only.")
        answers = self._batch("eth_getLogs", [[{"blockHash": header.hash}] for header in headers])
        return {header.number: self._announced(header, answer) for header, answer in zip(headers, answers, strict=True)}

    def _announced(self, header: Header, answer: object) -> list[Log]:
        entries = parse_list(answer, "logs")
        _check_bloom(header, entries)
        ours = [_log(header, entry) for entry in entries if address_of(entry) in self._addresses]
        return sorted(ours, key=lambda log: log.log_index)

    def _proven(self, header: Header, answer: object) -> list[Log]:
        if answer is None:
            raise _missing(header)
        receipts = [parse_object(receipt, "receipt") for receipt in parse_list(answer, "receipts")]
        if any(parse_hash(receipt.get("blockHash"), "block hash") != header.hash for receipt in receipts):
            raise ForkError(f"The receipts of block {header.number} are of another fork; asking again.")
        try:
            _check_root(header, receipts)
        except UnknownReceiptError as error:
            self.tell(
                f"The node's receipts of block {header.number} hold type {error}, whose encoding is not known here: "
                "the logs of such blocks are checked against the bloom of their header only."
            )
            _check_bloom(header, [entry for receipt in receipts for entry in _entries(receipt)])
        return self._placed(header, receipts)

    def _placed(self, header: Header, receipts: Sequence[Mapping[str, object]]) -> list[Log]:
        """Read our logs. The root proves their order, so their places are counted and not believed."""
        ours, place = [], 0
        for tx_index, receipt in enumerate(receipts):
            for entry in _entries(receipt):
                if address_of(entry) in self._addresses:
                    ours.append(_at(_log(header, entry), place, tx_index))
                place += 1
        return ours

    def tell(self, sentence: str) -> None:
        """Say, once, why logs cannot be verified as well as they should be."""
        if not self._told:
            self._told = True
            self._weakened(sentence)


def _missing(header: Header) -> BehindError:
    return BehindError(
        f"The node does not have the receipts of block {header.number}, though it has its header. It is not that far "
        "yet, or keeps no receipts of old blocks: then name an RPC address that does in COUNTERFOIL_RPC_URL."
    )


def address_of(entry: object) -> str:
    """Give the address of a log that may be anybody's, in lower case."""
    return parse_data(parse_object(entry, "log").get("address"), "address", 42).lower()


def _entries(receipt: Mapping[str, object]) -> list[object]:
    return parse_list(receipt.get("logs"), "receipt's logs")


def _transactions(header: Header, block: object) -> list[str]:
    if parse_header(block).hash != header.hash:
        raise ForkError(f"Block {header.number} was replaced while its receipts were read; asking again.")
    hashes = parse_list(parse_object(block, "block").get("transactions"), "transactions")
    if len(hashes) > MAX_RECEIPTS:
        raise BadAnswerError(f"The node gave over {MAX_RECEIPTS} transactions of one block; try another RPC address.")
    return [parse_hash(entry, "transaction hash") for entry in hashes]


def _log(header: Header, entry: object) -> Log:
    log = parse_log(entry)
    if log is None or log.block_hash != header.hash or log.block_number != header.number:
        raise ForkError(f"The logs of block {header.number} are of another fork; asking again.")
    return log


def _at(log: Log, log_index: int, tx_index: int) -> Log:
    return Log(log.block_number, log_index, log.block_hash, log.tx_hash, tx_index, log.address, log.topics, log.data)


def _check_root(header: Header, receipts: Sequence[Mapping[str, object]]) -> None:
    bloom = 0
    for receipt in receipts:
        bloom |= int(parse_data(receipt.get("logsBloom"), "receipt's bloom", BLOOM_LENGTH)[2:] or "0", 16)
    if receipts_root(receipts) != header.receipts_root or bloom != header.bloom:
        raise LieError(
            f"The node's receipts of block {header.number} are not those whose root is in its header; "
            "try another RPC address."
        )


def _check_bloom(header: Header, entries: Sequence[object]) -> None:
    # Without its data, which may be of any size and is not in the bloom.
    logs = [_log(header, {**parse_object(entry, "log"), "data": "0x"}) for entry in entries]
    if bloom_of(logs) != header.bloom:
        raise LieError(
            f"The node's logs of block {header.number} are not what its header announces; try another RPC address."
        )
