import json

import pytest
import rfc8785

from counterfoil.receipts import MAX_BYTES, ReceiptError, Skipped, canonical, digest, digest_of, parse, verify
from counterfoil.receipts.canonical import document
from tests.support.receipts import MARKET, example, request

EXAMPLE = canonical(example(candidates=MARKET[:2]))


def changed(path, replacement):
    """The example with one value replaced (or dropped, for ...), in canonical form."""
    found = json.loads(EXAMPLE)
    part = found
    for step in path[:-1]:
        part = part[step]
    if replacement is ...:
        del part[path[-1]]
    else:
        part[path[-1]] = replacement
    return rfc8785.dumps(found)


def test_verify__with_the_receipts_own_digest__gives_the_receipt():
    receipt = example(request=request(price_cap=5))

    assert verify(canonical(receipt), digest(receipt)) == receipt
    assert verify(canonical(receipt), digest(receipt).upper().replace("0X", "0x")) == receipt


def test_verify__with_any_single_byte_changed__fails():
    own = digest_of(EXAMPLE)
    for position in range(len(EXAMPLE)):
        data = bytearray(EXAMPLE)
        data[position] ^= 1
        with pytest.raises(ReceiptError, match="the receipt was changed, cut, or is another's"):
            verify(bytes(data), own)


def test_parse__with_any_single_byte_changed__fails_or_reads_another_receipt():
    # Without the digest only what follows from the inputs can be told.
    for position in range(0, len(EXAMPLE), 3):
        data = bytearray(EXAMPLE)
        data[position] ^= 1
        try:
            found = parse(bytes(data))
        except ReceiptError:
            continue
        assert canonical(found) == bytes(data)


@pytest.mark.parametrize("cut", [0, 1, 100, len(EXAMPLE) - 1])
def test_parse__with_a_receipt_cut_short__says_so(cut):
    with pytest.raises(ReceiptError, match=r"^the receipt is cut or not JSON$"):
        parse(EXAMPLE[:cut])


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\xff{}", "the receipt is not UTF-8 text (byte 0)"),
        (b"[]", "the receipt is not a JSON object"),
        (b"{}", "the receipt lacks the field snapshot"),
        (b"null", "the receipt is not a JSON object"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"\\"":' * 200_000, "nested too deeply"),
        (b'"' + b'\\"' * 2_000_000, "cut or not JSON"),
        (b'"' + b'\\"' * 2_000_000 + b"\\", "cut or not JSON"),
        (b'"a' * 2_000_000, "cut or not JSON"),
        (b'["\\"[[[[[[[[[', "cut or not JSON"),
        (b"]" * 200_000, "cut or not JSON"),
        (b'{"v":1.0}', "the number 1.0 is not an integer"),
        (b'{"v":1e3}', "the number 1e3 is not an integer"),
        (b'{"v":NaN}', "the number NaN is not an integer"),
        (b'{"v":' + b"9" * 5000 + b"}", "is too long; large amounts are decimal strings"),
        (b" " * (MAX_BYTES + 1), f"a receipt is at most {MAX_BYTES} bytes"),
        (EXAMPLE + b"\n", "not in canonical form (RFC 8785)"),
        (EXAMPLE.replace(b'"attempt":0', b'"attempt":0,"attempt":0'), "not in canonical form"),
        (json.dumps(json.loads(EXAMPLE)).encode(), "not in canonical form"),
    ],
)
def test_parse__with_bytes_that_are_no_receipt__says_why(data, sentence):
    with pytest.raises(ReceiptError) as refused:
        parse(data)

    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("path", "replacement", "sentence"),
    [
        (["v"], 2, "v is 2; the receipt's own inputs give 1"),
        (["v"], True, "v is true; the receipt's own inputs give 1"),
        (["kind"], "draw", 'kind is "draw"'),
        (["algorithm"], "oum-2", 'algorithm is "oum-2"'),
        (["extra"], 1, "extra is no field of this receipt"),
        (["snapshot", "extra"], 1, "snapshot.extra is no field of this receipt"),
        (["contracts", "Other"], "0x" + "1a" * 20, "contracts.Other is no field"),
        (["candidates", 0, "extra"], None, "candidates[0].extra is no field"),
        (["reason"], ..., "reason is missing; the receipt's own inputs give"),
        (["order"], ..., "order is missing"),
        (["chain_id"], ..., "the receipt lacks the field chain_id"),
        (["snapshot"], [], "snapshot is not a JSON object"),
        (["request", "nonce"], "3", "request: nonce is not an integer"),
        (["request", "nonce"], False, "request: nonce is not an integer"),
        (["request", "price_cap"], 5, "request: price_cap is not a string"),
        (["request", "price_cap"], "05", "request: price_cap is not a whole amount"),
        (["request", "price_cap"], "-5", "request: price_cap is not a whole amount"),
        (["request", "policy"], "NODE_SCORE", "request.policy 'NODE_SCORE' has no receipt"),
        (["request", "draw_seed"], "0x00", 'request.draw_seed is "0x00"'),
        (["request", "pinned"], "1", "request: pinned is not an integer"),
        (["candidates"], {}, "candidates is not a list"),
        (["candidates"], [[]], "candidate is not a JSON object"),
        (["candidates", 0, "price"], 100, "candidate 1: price is not a string"),
        (["candidates", 0, "price"], "1" * 78, "candidate 1: price 1111"),
        (["candidates", 0, "stake"], "1.5", "candidate 1: stake is not a whole amount"),
        (["candidates", 0, "stake"], ..., "candidate 1 lacks the field stake"),
        (["candidates", 0, "rating_sum"], 201, "candidate 1: rating_sum 201 is more than 100 for each"),
        (["candidates", 0, "stake"], "20000001", "candidates[1].terms."),
        (["candidates", 0, "terms", "headroom"], "1", 'candidates[0].terms.headroom is "1"'),
        (["candidates", 0, "weight"], "1", 'candidates[0].weight is "1"'),
        (["candidates", 0, "terms"], None, "candidates[0].terms is null"),
        (["order", 0], 77, "order[0] is 77"),
        (["order"], [1], "order"),
        (["attempt"], 1, "skipped does not name the 1 services"),
        (["skipped"], [{"service_id": 1}], "skipped lacks the field reason"),
        (["choice"], 9, "choice is 9"),
        (["relaxed"], True, "relaxed is true"),
        (["relaxed_reason"], "because", 'relaxed_reason is "because"'),
        (["previous"], 5, "the receipt: previous is not a string"),
        (["proves_not"], [], "proves_not has 0 entries; the receipt's own inputs give 4"),
        (["proves_not", 0], "anything", 'proves_not[0] is "anything"'),
    ],
)
def test_parse__with_one_part_changed__names_it(path, replacement, sentence):
    with pytest.raises(ReceiptError) as refused:
        parse(changed(path, replacement))

    assert sentence in str(refused.value)


def test_parse__with_unsorted_candidates__is_refused():
    found = document(example())
    found["candidates"].reverse()
    with pytest.raises(ReceiptError, match=r"candidates\[0\]"):
        parse(rfc8785.dumps(found))


def test_parse__with_a_lone_surrogate_in_a_reason__is_refused():
    first = example().order[0]
    data = canonical(example(attempt=1, skipped=[Skipped(first, "MARK")]))
    with pytest.raises(ReceiptError, match="is not a line of 1 to 280 characters"):
        parse(data.replace(b"MARK", b"\\ud800"))


def test_parse__with_words_beyond_ascii_in_a_reason__keeps_them():
    first = example().order[0]
    receipt = example(attempt=1, skipped=[Skipped(first, "pas de réponse 💤")])

    assert parse(canonical(receipt)).skipped[0].reason == "pas de réponse 💤"
