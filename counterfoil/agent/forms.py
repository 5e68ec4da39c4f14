"""How a step's input becomes an HTTP call and an answer an output."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallRequest:
    """One call below the node's `/call`: method, path with its query, headers and body."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """What a call was answered: HTTP status, content type and the whole body."""

    status: int
    content_type: str
    body: bytes
