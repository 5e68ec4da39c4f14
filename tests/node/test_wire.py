import pytest
from eth_hash.auto import keccak
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.node.server import target_of
from counterfoil.node.vouchers import Voucher
from counterfoil.node.wire import Failure, MalformedError, read_voucher, request_digest, voucher_headers

targets = st.sampled_from(["", "/", "/x", "/x?y", "?y"])
methods = st.sampled_from(["GET", "POST"])
vouchers = st.builds(
    Voucher,
    session_id=st.binary(min_size=32, max_size=32).map(lambda raw: "0x" + raw.hex()),
    amount=st.integers(0, 2**128 - 1),
    calls=st.integers(0, 2**32 - 1),
    signature=st.binary(min_size=65, max_size=65),
)


@given(vouchers)
def test_read_voucher__of_its_own_headers__gives_it_back(voucher):
    assert read_voucher(voucher_headers(voucher)) == voucher


@given(st.sampled_from(sorted(voucher_headers(Voucher("", 0, 0, b"")))), st.text(max_size=200))
def test_read_voucher__with_any_text_in_a_header__reads_it_or_names_the_header(name, text):
    headers = voucher_headers(Voucher("0x" + "ab" * 32, 1, 1, bytes(65))) | {name: text}
    try:
        found = read_voucher(headers)
    except MalformedError as error:
        found = error
    assert name in str(found) if isinstance(found, MalformedError) else voucher_headers(found) == headers


def test_request_digest__of_a_request__is_keccak_of_method_target_and_body():
    assert request_digest("POST", "/v1/x?y=1", b"\x00b") == "0x" + keccak(b"POST /v1/x?y=1\n\x00b").hex()


@given(methods, targets, st.binary(max_size=8), methods, targets, st.binary(max_size=8))
def test_request_digest__of_two_requests__is_one_only_for_the_same(method, target, body, method2, target2, body2):
    same = request_digest(method, target, body) == request_digest(method2, target2, body2)
    assert same is ((method, target, body) == (method2, target2, body2))


@pytest.mark.parametrize(
    ("path", "query", "target"),
    [
        (b"/call", b"", ""),
        (b"/call/", b"", "/"),
        (b"/call", b"a=b", "?a=b"),
        (b"/call/a%2F..b/.c/d..", b"x=../y", "/a%2F..b/.c/d..?x=../y"),
        (b"/callx", b"", None),
        (b"/%63all", b"", None),
        (b"/call%2Fx", b"", None),
        (b"/call/..", b"", None),
        (b"/call/%2E./x", b"", None),
        (b"/call/a%2f..%2Fb", b"", None),
        (b"/call/a\\..\\b", b"", None),
        (b"http://other/call", b"", None),
    ],
)
def test_target_of__of_a_request__is_what_follows_call_or_an_error(path, query, target):
    scope = {"raw_path": path, "query_string": query}
    if target is None:
        with pytest.raises(MalformedError, match=r"without . and .. segments"):
            target_of(scope)
    else:
        assert target_of(scope) == target


def test_failure__as_a_document__has_its_fields():
    failure = Failure("0xab", 1, "0xcd", 502, "why", "0x12", "0x34")
    assert failure.document() == {
        "session_id": "0xab", "calls": 1, "request": "0xcd", "status": 502, "reason": "why", "operator": "0x12",
        "signature": "0x34",
    }  # fmt: skip
