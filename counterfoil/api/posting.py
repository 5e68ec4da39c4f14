"""`POST /experience`: a client's signed record of what it found, taken without the chain."""

from typing import Annotated

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import State

from counterfoil import posting
from counterfoil.answers import TakenAnswer
from counterfoil.api.examples import example_record
from counterfoil.api.problems import ProblemError
from counterfoil.chain.contracts import ExperienceRecord
from indexer.rows import NO_JUDGE

router = APIRouter()
_UINT256_DIGITS = 78
THREADS = 2
"""How many records are checked at once: a database or a chain that lets them wait must not hold up other answers."""
MAX_WAITING = 64
Count = Annotated[int, Field(ge=0, lt=2**32)]


class PostedBody(BaseModel):
    """A record as its client signed it (EIP-712 `Experience` of the ExperienceLedger), and the signature."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"example": example_record()})

    service_id: Annotated[int, Field(ge=1, lt=2**63, description="The service that the session is with")]
    session_id: Annotated[str, Field(pattern="^0x[0-9a-f]{64}$")]
    tool: Annotated[str, Field(max_length=posting.MAX_BYTES["tool"])]
    need: Annotated[str, Field(max_length=posting.MAX_BYTES["need"])] = ""
    task: Annotated[str, Field(max_length=posting.MAX_BYTES["task"])] = ""
    worked: bool
    calls: Count
    failures: Count = 0
    judge_score: Annotated[int | None, Field(ge=0, le=posting.MAX_SCORE, description="null where nobody judged")] = None
    latency_ms: Count
    cost: Annotated[str, Field(pattern=f"^[0-9]{{1,{_UINT256_DIGITS}}}$", description="Base units")]
    message: Annotated[str, Field(max_length=posting.MAX_BYTES["message"])] = ""
    note: Annotated[str, Field(max_length=posting.MAX_BYTES["note"])] = ""
    signature: Annotated[str, Field(pattern=f"^0x([0-9a-fA-F]{{2}}){{0,{posting.MAX_SIGNATURE}}}$")]

    def record(self) -> ExperienceRecord:
        """Give the record that the client signed."""
        given = self.model_dump(exclude={"service_id", "signature"})
        judge = NO_JUDGE if self.judge_score is None else self.judge_score
        return ExperienceRecord(**given | {"cost": int(self.cost), "judge_score": judge})


@router.post("/experience", status_code=201)
async def experience(request: Request, body: PostedBody) -> TakenAnswer:
    """Take a signed record under the ledger's rules; it counts from the next block on, and once if it is attested."""
    threads: CapacityLimiter = request.app.state.posting
    if threads.statistics().tasks_waiting >= MAX_WAITING:
        raise ProblemError("not-ready", "too many records are being checked: send it again in a moment")
    return await to_thread.run_sync(_taken, request.app.state, body, limiter=threads)


def _taken(state: State, body: PostedBody) -> TakenAnswer:
    signature = bytes.fromhex(body.signature[2:])
    taken = posting.post(state.store, body.service_id, body.record(), signature, state.ask_ledger)
    return {
        "session_id": taken.session_id,
        "service_id": taken.service_id,
        "tool": taken.tool,
        "counts_from": taken.counts_from,
    }
