"""What providers say when they refuse, word for word as reported in public, and what we make of it."""

import pytest

from indexer.refusals import classify, usable_blocks

ALCHEMY = (
    "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the "
    "response size, or you can request any block range with a cap of 10K logs in the response. Based on your "
    "parameters and the response size limit, this block range should work: [0x64, 0x95]"
)
ALCHEMY_FREE_PLAN = (
    "Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. Based on your "
    "parameters, this block range should work: [0x123c9b2, 0x123c9bb]. Upgrade to PAYG for expanded block range."
)
BLOCKPI = (
    "eth_getLogs is limited to 1024 block range. Please check the parameter requirements at "
    "https://docs.blockpi.io/documentations/api-reference"
)
CHAINSTACK = "Block range limit exceeded. See more details at https://docs.chainstack.com/docs/limits"
RANGE = [
    ("alchemy", -32602, ALCHEMY, 50),
    ("alchemy, free plan", -32600, ALCHEMY_FREE_PLAN, 10),
    ("alchemy, large", -32000, "Response size is larger than 150MB limit", None),
    ("infura", -32005, "query returned more than 10000 results. Try with this block range [0xBDE5F8, 0xBDE6F7].", 256),
    ("infura, range", -32602, "range 1000000 exceeds limit of 10000", 10000),
    ("infura, blocks", -32602, "range 25887126 - 25897126 exceeds limit of 10000", 10000),
    ("infura, slow", -32005, "query timeout exceeded", None),
    ("quicknode", -32614, "eth_getLogs is limited to a 10,000 range", 10000),
    ("blockpi", -32602, BLOCKPI, 1024),
    ("1rpc", -32602, "eth_getLogs is limited to 0 - 50 blocks range", 50),
    ("1rpc, size", -32000, "response size should not greater than 10000000 bytes", None),
    ("ankr", -32600, "block range is too wide", None),
    ("drpc", 35, "ranges over 10000 blocks are not supported on freetier", 10000),
    ("cloudflare", -32047, "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800", 800),
    ("chainstack", -32602, CHAINSTACK, None),
    ("llamanodes", -32603, "eth_getLogs range is too large, max is 1k blocks", 1000),
    ("reth", -32602, "query exceeds max block range 100000", 100000),
    ("reth, results", -32602, "query exceeds max results 20000, retry with the range 23879634-23879696", 63),
    ("erigon", -32000, "query block range exceeds server limit, narrow your filter: 1000", 1000),
    ("erigon, results", -32000, "query returns too many logs, narrow your filter: 20000", None),
    ("polygon's erigon", -32005, "block range too large, max range: 1000", 1000),
    ("nethermind", -32005, "Too many logs requested. Max logs per response is 20000.", None),
    ("publicnode", -32701, "exceed maximum block range: 50000", 50000),
    ("coinbase", -32005, "please limit the query to at most 1000 blocks", 1000),
    ("scroll", -32000, "block range is bigger than maxBlockRange", None),
    ("morph", -32000, "block range is larger than max block range, block range = 5120, max block range = 5000", 5000),
    ("avalanche", -32000, "requested too many blocks from 0 to 5000000, maximum is set to 2048", 2048),
    ("thirdweb", -32602, "invalid params: range 20000 is bigger than range limit 2000", 2000),
    ("base", -32000, "Block range too large: maximum allowed is 1000 blocks", 1000),
    ("op proxyd", -32020, "backend response too large", None),
    ("arbitrum", -32000, "logs matched by query exceeds limit of 10000", None),
    ("geth", -32002, "request timed out", None),
]  # fmt: skip
OTHER = [
    ("rate", 429, "Your app has exceeded its compute units per second capacity"),
    ("rate", -32005, "daily request count exceeded, request rate limited"),
    ("rate", -32012, "credits limited to 6000/sec"),
    ("rate", -32029, "Too Many Requests"),
    ("history", 4444, "pruned history unavailable"),
    ("history", -32000, "Receipt not available for From block 14319330."),
    ("history", -32000, "data before txNum=2662500000 is not available: blockNum=16999999, txNum=1962853355"),
    ("history", -32000, "missing trie node 5f3c2ab1 (path ) state 0x5f3c2ab1 is not available"),
    ("history", -32000, "old data not available due to pruning"),
    ("history", -32000, "required historical state unavailable (reexec=128)"),
    ("history", -32602, "Archive requests require a personal token. Get one at: https://www.allnodes.com/publicnode"),
    ("unsupported", -32601, "Method not found"),
    ("unsupported", -32000, "the method eth_getBlockReceipts does not exist/is not available"),
    ("unsupported", -32600, "Unsupported method: eth_getBlockReceipts on ETH_MAINNET"),
    ("other", -32005, "limit exceeded"),
    ("other", -32000, "header not found"),
    ("other", -32000, "execution reverted: generates strange errors"),
    ("other", None, ""),
]


@pytest.mark.parametrize(("who", "code", "message", "blocks"), RANGE, ids=[who for who, *_ in RANGE])
def test_classify__of_a_range_or_result_limit__asks_for_less(who, code, message, blocks):
    assert classify(code, message) == "range"
    assert usable_blocks(message) == blocks


@pytest.mark.parametrize(("kind", "code", "message"), OTHER)
def test_classify__of_other_refusals__follows_their_words(kind, code, message):
    assert classify(code, message) == kind


@pytest.mark.parametrize(
    "message",
    [
        "this block range should work: [0x10, 0x1]",
        "up to a 0 block range",
        "max range: " + "9" * 400,
        "range " * 300,
        "limited to a ,.,",
        "exceeds max block range",
    ],
)
def test_usable_blocks__of_what_makes_no_sense__names_none_or_a_number_of_bounded_digits(message):
    blocks = usable_blocks(message)
    assert blocks is None or blocks < 10**13
