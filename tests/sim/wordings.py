"""How nodes and providers refuse a range or a number of results, and how they say that history is pruned.

Collected from public reports. Each has the provider's HTTP status, its JSON-RPC code, its words, and, where the words
stand there, its `data`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Wording:
    """One refusal."""

    who: str
    status: int
    code: int
    message: str
    data: object = None

    def error(self):
        """Give the error object of the answer."""
        return {"code": self.code, "message": self.message} | ({} if self.data is None else {"data": self.data})


TOO_MANY_BLOCKS = (
    Wording("cloudflare", 200, -32047,
            "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800"),
    Wording("ankr", 400, -32600, "block range is too wide"),
    Wording("ankr, newer", 200, -32062, "Block range is too large"),
    Wording("quicknode", 413, -32614, "eth_getLogs is limited to a 10,000 range"),
    Wording("alchemy, free plan", 400, -32600,
            "Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. Based on your "
            "parameters, this block range should work: [0x1180fca, 0x1180fd3]. Upgrade to PAYG for expanded block "
            "range."),
    Wording("1rpc", 200, -32602, "eth_getLogs is limited to 0 - 50 blocks range"),
    Wording("publicnode", 200, -32701, "exceed maximum block range: 50000"),
    Wording("drpc", 400, 35, "ranges over 10000 blocks are not supported on free plan"),
    Wording("avalanche", 200, -32000, "requested too many blocks from 0 to 5000000, maximum is set to 2048"),
    Wording("reth", 200, -32602, "query exceeds max block range 100000"),
    Wording("thirdweb", 200, -32602, "invalid params", "range 20000 is bigger than range limit 2000"),
    Wording("chainstack", 403, -32000, "Block range limit exceeded."),
)  # fmt: skip

TOO_MANY_RESULTS = (
    Wording("alchemy", 400, -32602,
            "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on "
            "the response size, or you can request any block range with a cap of 10K logs in the response. Based on "
            "your parameters and the response size limit, this block range should work: [0x0, 0x79bcb3]"),
    Wording("alchemy, slow query", 400, -32000,
            "Query timeout exceeded. Consider reducing your block range. Based on your parameters and the response "
            "size limit, this block range should work: [0x5223c98, 0x5223e80]"),
    Wording("infura", 200, -32005,
            "query returned more than 10000 results. Try with this block range [0x5B04A0, 0x5B0BFF].",
            {"from": "0x5B04A0", "limit": 10000, "to": "0x5B0BFF"}),
    Wording("op proxyd", 500, -32020, "backend response too large"),
    Wording("reth, results", 200, -32602, "query exceeds max results 20000, retry with the range 3600741-3620740"),
    Wording("bsc", 200, -32005, "limit exceeded"),
    Wording("arbitrum", 200, -32000, "logs matched by query exceeds limit of 10000"),
    Wording("1rpc, size", 200, -32000, "response size should not greater than 10000000 bytes"),
)  # fmt: skip

PRUNED = (
    Wording("geth", 200, 4444, "pruned history unavailable"),
    Wording("geth, state", 200, -32000, "missing trie node 5f3c2ab1 (path ) state 0x5f3c2ab1 is not available"),
    Wording("erigon", 200, -32000, "old data not available due to pruning"),
)
