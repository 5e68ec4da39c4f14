"""The chain as one node tells it, for one deployment: verified ranges of headers and logs.

A log counts only where its block hash is that of the header we hold. A block is read again from its receipts, which
the root in its header proves (indexer/proof.py), where the header's bloom may hold an event of ours and the answer
has none of that kind, where the answer holds what the bloom does not or an event that is not known, and where the
answer's last log is, since a cut falls there. `verify="full"` does so for every block with a log of anybody's. When
an answer differs from what is proven, nothing of it is used.

Events that are not known here are asked for too, by address, and are kept raw. In bloom mode nobody looks for one
that was left out: by its bloom it cannot be told from those of other contracts.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from indexer.chain import Header, Log, bloom_bits, parse_header, parse_list, parse_log
from indexer.decode import DECODERS
from indexer.deployment import Deployment
from indexer.errors import (
    BadAnswerError,
    BehindError,
    ForkError,
    HoleError,
    LieError,
    RangeTooLargeError,
    UnavailableError,
)
from indexer.identity import absent, check_identity
from indexer.proof import BLOCKS_A_BATCH, Cost, Prover
from indexer.rpc import CALLS_A_BATCH, Rpc

Verify = Literal["bloom", "full"]
Finality = str | int
"""The tag whose block is final ("finalized", "safe"), or how many blocks below the head."""

Kind = tuple[str, str]
"""Address and first topic of a log; the topic is empty where it has none."""


@dataclass(frozen=True, slots=True)
class BlockRange:
    """Consecutive headers, and all our logs in them by block and index."""

    headers: tuple[Header, ...]
    logs: tuple[Log, ...]
    lie: str | None = None
    """What the node said wrong on the way; nothing of that is in the range."""


@dataclass(frozen=True, slots=True)
class _Answer:
    logs: dict[int, list[Log]]
    """By block number, ordered."""
    lie: str | None


def _ignored(_: str) -> None:
    return None


def never() -> bool:
    """Say that nothing is over."""
    return False


def stopping() -> UnavailableError:
    """What is raised where a run that is over would have to ask or to wait."""
    return UnavailableError("The run stops here, so nothing more is asked: run it again to go on.")


class Source:
    """Asks one node about one deployment."""

    def __init__(
        self,
        rpc: Rpc,
        deployment: Deployment,
        *,
        verify: Verify = "bloom",
        weakened: Callable[[str], None] = _ignored,
        is_over: Callable[[], bool] = never,
    ) -> None:
        """`weakened` is told, once, why logs cannot be verified as well as they should be.

        Once `is_over` is true, nothing more is asked: UnavailableError after the request that runs.
        """
        self._rpc = rpc
        self._is_over = is_over
        self._full = verify == "full"
        self._deployment = deployment
        self.newest = 0
        """The newest block that the node has told of: an absent one below it is no more, one above it not yet there."""
        addresses = deployment.addresses()
        self._addresses = frozenset(addresses.values())
        self._kinds: dict[Kind, int] = {
            (address, topic): _bits(address) | _bits(topic)
            for name, address in addresses.items()
            for topic in DECODERS[name]
        }
        self._pinned = {contract.block: contract.block_hash for contract in deployment.indexed()}
        self._prover = Prover(rpc, self._addresses, weakened)

    @property
    def cost(self) -> Cost:
        """What proving blocks took so far."""
        return self._prover.cost

    def note(self, cost: Cost, told: Iterable[str]) -> None:
        """Count as this one's what another `Source` of the same node took and told (see indexer/reading.py)."""
        self._prover.cost.add(cost)
        for sentence in told:
            self._prover.tell(sentence)

    def check_identity(self) -> None:
        """Compare the chain with the deployment file (see indexer/identity.py)."""
        check_identity(self._rpc, self._deployment)

    def head(self) -> Header:
        """Give the newest block."""
        answer = self._rpc.call("eth_getBlockByNumber", ["latest", False])
        if answer is None:
            raise BehindError("The node has no latest block yet; waiting for it.")
        head = parse_header(answer)
        self.newest = head.number
        return head

    def final(self, finality: Finality, head: Header) -> Header | None:
        """Give the newest final block, None where the node does not know one."""
        if isinstance(finality, int):
            number = head.number - finality
            return self.header(number) if number >= self._deployment.first_block else None
        try:
            answer = self._rpc.call("eth_getBlockByNumber", [finality, False])
        except BadAnswerError:
            return None  # chains without finality refuse the word
        return None if answer is None else parse_header(answer)

    def header(self, number: int) -> Header:
        """Give one block; BehindError when the node does not have it yet, NoHistoryError when not any more."""
        return self.headers(number, number)[0]

    def headers(self, first: int, last: int) -> tuple[Header, ...]:
        """Give consecutive blocks, linked by their parent hashes."""
        headers: list[Header] = []
        for number, answer in enumerate(self._blocks(first, last), first):
            if answer is None:
                raise absent(number, self.newest)
            header = parse_header(answer)
            if header.number != number:
                raise LieError(f"The node gave block {header.number} for {number}; try another RPC address.")
            if headers and header.parent_hash != headers[-1].hash:
                raise ForkError(f"Block {number} does not follow block {number - 1}: the chain moved; asking again.")
            if header.hash != self._pinned.get(number, header.hash):
                raise ForkError(f"Block {number} is not the one of the deployment file; asking again.")
            headers.append(header)
        return tuple(headers)

    def _blocks(self, first: int, last: int) -> Iterator[object]:
        for at in range(first, last + 1, CALLS_A_BATCH):
            self._go_on()
            numbers = range(at, min(at + CALLS_A_BATCH, last + 1))
            yield from self._rpc.batch([("eth_getBlockByNumber", [hex(number), False]) for number in numbers])

    def _go_on(self) -> None:
        if self._is_over():
            raise stopping()

    def fetch(self, first: int, last: int) -> BlockRange:
        """Give a verified range.

        Raises RangeTooLargeError when the node wants a smaller one, and HoleError when its logs are not all there or
        not true. A single block is not refused for either: its logs are those that its receipts prove.
        """
        headers = self.headers(first, last)
        try:
            return self._verified(headers, self._answer(headers))
        except RangeTooLargeError:
            if first < last:
                raise
            return self._proven(headers)
        except LieError as error:
            if first < last:
                raise HoleError(str(error)) from None
            return self._proven(headers, str(error))

    def _proven(self, headers: tuple[Header, ...], lie: str | None = None) -> BlockRange:
        proven = self._prover.logs(headers)
        return BlockRange(headers, tuple([log for header in headers for log in proven[header.number]]), lie)

    def _verified(self, headers: tuple[Header, ...], answer: _Answer) -> BlockRange:
        doubtful = self._doubtful(headers, answer.logs)
        for at in range(0, len(doubtful), BLOCKS_A_BATCH):
            self._go_on()
            for number, proven in self._prover.logs(doubtful[at : at + BLOCKS_A_BATCH]).items():
                _compare(number, answer.logs.get(number, []), proven)
        complete = [log for header in headers for log in answer.logs.get(header.number, ())]
        return BlockRange(headers, tuple(complete), answer.lie)

    def _answer(self, headers: Sequence[Header]) -> _Answer:
        """Ask for our logs; drop removed and foreign ones and repetitions, and sort the rest."""
        first, last = headers[0].number, headers[-1].number
        wanted = {"address": sorted(self._addresses), "fromBlock": hex(first), "toBlock": hex(last)}
        places: dict[tuple[int, int], Log] = {}
        lie = None
        answer = self._rpc.call("eth_getLogs", [wanted])
        if answer is None:
            raise BehindError(
                f"The node gives no logs of blocks {first} to {last}. It is not that far yet, or keeps no logs of old "
                "blocks: then name an RPC address that does in COUNTERFOIL_RPC_URL."
            )
        for entry in parse_list(answer, "logs"):
            log = parse_log(entry)
            if log is None:
                continue
            if log.address not in self._addresses:
                lie = f"The node gave logs of {log.address}, which was not asked for."
                continue
            if not first <= log.block_number <= last:
                raise LieError("The node gave logs of blocks that were not asked; try another RPC address.")
            if log.block_hash != headers[log.block_number - first].hash:
                raise ForkError(f"The logs of block {log.block_number} are of another fork; asking again.")
            if places.setdefault((log.block_number, log.log_index), log) != log:
                raise LieError("The node gave two different logs for one place; try another RPC address.")
        by_block: dict[int, list[Log]] = {}
        for number, index in sorted(places):
            by_block.setdefault(number, []).append(places[number, index])
        return _Answer(by_block, lie)

    def _doubtful(self, headers: Sequence[Header], by_block: dict[int, list[Log]]) -> list[Header]:
        last = max(by_block, default=None)
        return [
            header
            for header in headers
            if header.number == last or self._is_doubtful(header, by_block.get(header.number, ()))
        ]

    def _is_doubtful(self, header: Header, logs: Sequence[Log]) -> bool:
        """Tell whether a block's bloom and its logs do not fit each other, or nobody can tell by them."""
        if not header.bloom and not logs:
            return False
        if self._full:
            return True
        held = {(log.address, log.topics[0] if log.topics else "") for log in logs}
        if not held <= self._kinds.keys():
            return True
        return any((kind in held) != (header.bloom & bits == bits) for kind, bits in self._kinds.items())


def _bits(text: str) -> int:
    return bloom_bits(bytes.fromhex(text[2:]))


def _compare(number: int, told: Sequence[Log], proven: Sequence[Log]) -> None:
    if set(proven) - set(told):
        raise LieError(f"The node left out logs of block {number} that its receipts hold; try another RPC address.")
    if told != proven:
        raise LieError(f"The node gave logs of block {number} that its receipts do not hold; try another RPC address.")
