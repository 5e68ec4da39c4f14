"""What an operator says of its node, signed: loaded models, slots, queue, VRAM. What is not known is null."""

import asyncio
import json
import time
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import version
from typing import Any, Final

import rfc8785
import structlog
from eth_account.signers.local import LocalAccount
from eth_hash.auto import keccak
from starlette.concurrency import run_in_threadpool

from counterfoil.chain.typed_data import heartbeat as heartbeat_data
from counterfoil.node.metrics import Metrics
from counterfoil.node.proxy import Proxy
from counterfoil.node.reading import Reader
from counterfoil.node.upstream import Ask, Bounds, UpstreamError, Upstreams
from indexer.errors import IndexerError
from indexer.http import BoundedHttp, HttpError
from indexer.settings import Settings

PATH: Final = "/telemetry/heartbeat"
MAX_MODELS: Final = 64
MAX_NAME: Final = 128
_BOUNDS: Final = Bounds(first_seconds=5, seconds=5, max_bytes=2**18)
_GPU: Final = ("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits")
_log = structlog.get_logger()


class Heart:
    """Makes a signed report every `node_heartbeat_seconds`, and posts it where there is a coordinator."""

    def __init__(
        self,
        node_id: int,
        account: LocalAccount,
        reader: Reader,
        proxy: Proxy,
        upstreams: Upstreams,
        metrics: Metrics,
        settings: Settings,
    ) -> None:
        self.latest: dict[str, Any] | None = None
        self._node_id = node_id
        self._account = account
        self._reader = reader
        self._proxy = proxy
        self._upstreams = upstreams
        self._metrics = metrics
        self._urls = sorted(set(settings.upstreams().values()))
        self._coordinator = settings.node_coordinator.rstrip("/")
        self._seconds = settings.node_heartbeat_seconds

    async def run(self) -> None:
        """Beat until cancelled. A fault is logged, and harms nothing else."""
        while True:
            try:
                await self.beat()
            except (IndexerError, HttpError) as error:
                self._metrics.heartbeats.labels("failed").inc()
                _log.warning("heartbeat_failed", message=f"The heartbeat was not posted: {str(error)[:200]}")
            await asyncio.sleep(self._seconds)

    async def beat(self) -> None:
        """Make a report, sign it and post it. Raises ChainError and HttpError."""
        report = {
            "node_id": self._node_id,
            "sent_at": int(time.time()),
            "models": await self._models(),
            "slots": self._proxy.most,
            "busy": self._proxy.asking,
            "queue": max(0, self._proxy.in_flight - self._proxy.asking),
            "vram_mib": await vram_mib(),
            "software": f"counterfoil/{version('counterfoil')}",
        }
        self.latest = await run_in_threadpool(self._signed, report)
        if self._coordinator:
            await run_in_threadpool(self._post, self.latest)
            self._metrics.heartbeats.labels("posted").inc()

    def _signed(self, report: dict[str, Any]) -> dict[str, Any]:
        registry = self._reader.registry
        digest = report_digest(report)
        data = heartbeat_data(registry.chain.chain_id, registry.address, self._node_id, report["sent_at"], digest)
        return {"report": report, "digest": digest, "signature": "0x" + data.sign(self._account).hex()}

    def _post(self, heartbeat: dict[str, Any]) -> None:
        with BoundedHttp(seconds=_BOUNDS.seconds, max_bytes=_BOUNDS.max_bytes) as http:
            answer = http.request(
                "POST", self._coordinator + PATH, content=json.dumps(heartbeat).encode(),
                headers={"Content-Type": "application/json"},
            )  # fmt: skip
        if answer.status >= 300:
            raise HttpError(f"the coordinator answered {answer.status}")

    async def _models(self) -> list[str] | None:
        """The models of every upstream that says which it has loaded."""
        answers = [await self._models_at(url) for url in self._urls]
        known = [models for models in answers if models is not None]
        return sorted({name for models in known for name in models})[:MAX_MODELS] if known else None

    async def _models_at(self, url: str) -> list[str] | None:
        body = bytearray()
        target = "/models" if url.rstrip("/").endswith("/v1") else "/v1/models"
        try:
            ask = Ask("GET", target, {"accept": "application/json"}, b"")
            await self._upstreams.fetch(url, ask, lambda *_: None, body.extend, _BOUNDS)
        except UpstreamError:
            return None
        return models_in(bytes(body))


def report_digest(report: dict[str, Any]) -> str:
    """keccak256 of a report's canonical JSON (RFC 8785), as 0x and 64 lower-case digits."""
    return "0x" + keccak(rfc8785.dumps(report)).hex()


def models_in(body: bytes) -> list[str] | None:
    """The models that an answer of the OpenAI form lists, None where it has another form."""
    try:
        listed = json.loads(body)["data"]
        names = [entry["id"] for entry in listed]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return [name for name in names[:MAX_MODELS] if _is_name(name)]


async def vram_mib() -> int | None:
    """The memory of this machine's GPUs together, in MiB; None where `nvidia-smi` tells nothing."""
    try:
        process = await asyncio.create_subprocess_exec(
            *_GPU, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
    except OSError:
        return None
    try:
        async with asyncio.timeout(_BOUNDS.seconds):
            told, _ = await process.communicate()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        return None
    return _sum_of(told.split()) if process.returncode == 0 else None


def _sum_of(words: Iterable[bytes]) -> int | None:
    sizes = [int(word) for word in words if word.isdigit() and len(word) <= 9]
    return sum(sizes) if sizes else None


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= MAX_NAME and name.isprintable()
