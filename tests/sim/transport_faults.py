"""Faults of the transport: what comes back over HTTP is late, cut, no JSON, an error, or for somebody else."""

import json

from tests.sim.proxy import Fault, Reply

_SURELY = 4
HTML = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"


class SometimesFault(Fault):
    """Strikes with probability `share`, and one of the first times surely: a run may have few."""

    def __init__(self, share):
        self.share = share
        self.hits = self.seen = 0

    def strikes(self):
        self.seen += 1
        struck = self.rng.random() < self.share or self.seen == _SURELY
        self.hits += struck
        return struck


class TransportFault(SometimesFault):
    """Spoils replies."""

    def __init__(self, share=0.15):
        super().__init__(share)

    def reply(self, calls, reply):
        return self.spoil(reply) if self.strikes() else reply

    def spoil(self, reply):
        raise NotImplementedError


class TooManyRequests(TransportFault):
    """HTTP 429, with or without Retry-After (seconds)."""

    def __init__(self, retry_after=None, share=0.15):
        super().__init__(share)
        self.retry_after = retry_after
        self.name = "429 without Retry-After" if retry_after is None else "429 with Retry-After"

    def spoil(self, reply):
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return Reply(b"slow down", 429, headers)


class BadGateway(TransportFault):
    """HTTP 502 with a page of HTML."""

    name = "502 with an HTML body"

    def spoil(self, reply):
        return Reply(HTML, 502, {"Content-Type": "text/html"})


class HtmlPage(TransportFault):
    """HTTP 200 with a page of HTML."""

    name = "200 with an HTML body"

    def spoil(self, reply):
        return Reply(HTML, 200, {"Content-Type": "text/html"})


class CutInBody(TransportFault):
    """The connection ends in the middle of the body."""

    name = "connection cut in mid-body"

    def spoil(self, reply):
        reply.sent = len(reply.body) // 2
        return reply


class Hang(TransportFault):
    """No answer for so many seconds."""

    name = "a hang"

    def __init__(self, seconds, share=0.05):
        super().__init__(share)
        self.seconds = seconds

    def spoil(self, reply):
        reply.held = self.seconds
        return reply


class MalformedJson(TransportFault):
    """JSON without its end."""

    name = "malformed JSON"

    def spoil(self, reply):
        return Reply(reply.body[: -1 - len(reply.body) // 10], 200, reply.headers)


class ErrorUnder200(TransportFault):
    """A JSON-RPC error under HTTP 200, for every call of the request."""

    name = "a JSON-RPC error under HTTP 200"

    def spoil(self, reply):
        return _each(reply, lambda answer: {"jsonrpc": "2.0", "id": answer["id"], "error": _INTERNAL})


class WrongId(TransportFault):
    """An answer for another id than was asked."""

    name = "an answer for the wrong id"

    def spoil(self, reply):
        return _each(reply, lambda answer: {**answer, "id": answer["id"] + 7})


class Oversized(TransportFault):
    """An answer over the limit of bytes."""

    name = "an answer over the size limit"

    def __init__(self, size, share=0.15):
        super().__init__(share)
        self.size = size

    def spoil(self, reply):
        return Reply(reply.body + b" " * self.size, 200, reply.headers)


class NullBlock(SometimesFault):
    """A block that the node has is null for a while."""

    name = "a null block"

    def __init__(self, share=0.02):
        super().__init__(share)

    def answer(self, call, answer):
        return {**answer, "result": None} if call.method == "eth_getBlockByNumber" and self.strikes() else answer


_INTERNAL = {"code": -32603, "message": "internal error"}


def _each(reply, change):
    document = json.loads(reply.body)
    changed = [change(answer) for answer in document] if isinstance(document, list) else change(document)
    return Reply(json.dumps(changed).encode(), 200, reply.headers)
