import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from eth_abi.abi import encode
from web3.exceptions import ContractLogicError

from counterfoil.chain.artifacts import artifact
from counterfoil.chain.connection import Chain, connect, revert_reason
from counterfoil.chain.contracts import NodeRegistry, RoutingLens, SessionManager
from counterfoil.chain.errors import ChainError, NoAnswerError, UnconfirmedError
from counterfoil.chain.provider import BoundedProvider
from counterfoil.chain.sender import Sender
from indexer.deployment import Deployment
from indexer.errors import DeploymentError, WrongChainError
from indexer.settings import Settings
from tests.support.chain import person, unused_url


@contextmanager
def server(answer):
    """An RPC that gives one answer to everything: status, body, and more headers."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body, *headers = answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{made.server_port}/secret-key?token=secret"
        finally:
            made.shutdown()
            thread.join()


@contextmanager
def chain_at(url, **options):
    chain = Chain(BoundedProvider(url, **options), Deployment(31337, "0x" + "0" * 64, {}))
    try:
        yield chain
    finally:
        chain.close()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((200, b"<html>"), "an answer that is not JSON"),
        ((200, b"[]"), "an answer that is no JSON-RPC"),
        ((200, b'{"jsonrpc":"2.0","id":1}'), "an answer that is no JSON-RPC"),
        ((502, b"Bad gateway"), "HTTP status 502"),
        ((200, b" " * 2000), "more than 1000 bytes"),
        ((200, b"{}", ("Content-Encoding", "gzip, gzip")), "a compressed answer, which was not asked for"),
        ((200, b"\xff\xfe"), "an answer that is not JSON"),
        ((200, b'{"jsonrpc":"2.0","id":0,"result":"0xzz"}'), "cannot be read from the RPC's answer"),
        ((200, b'{"jsonrpc":"2.0","id":0,"result":null}'), "cannot be read from the RPC's answer"),
        ((200, b'{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"no\\u001b[31m"}}'), "the RPC refused with"),
        ((429, b'{"jsonrpc":"2.0","id":0,"error":{"code":-32005,"message":"slow down"}}'), "refused with 'slow down'"),
    ],
)
def test_chain__with_an_rpc_that_answers_rubbish__says_so_and_hides_the_key(answer, sentence):
    with server(answer) as url, chain_at(url, max_bytes=1000) as chain, pytest.raises(ChainError) as refused:
        _ = chain.chain_id

    assert sentence in str(refused.value)
    assert "secret" not in str(refused.value)
    assert "--rpc" in str(refused.value) or "use another RPC" in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "result", ["{}", "[]", '"0x1"', '{"number":"0x1"}', '{"number":"0x1","hash":null,"timestamp":"0x1"}']
)
def test_head__with_a_block_that_is_none__says_so(result):
    body = f'{{"jsonrpc":"2.0","id":0,"result":{result}}}'.encode()
    with (
        server((200, body)) as url,
        chain_at(url) as chain,
        pytest.raises(ChainError, match="The latest block cannot be read"),
    ):
        chain.head()


def test_chain__with_an_rpc_that_drips__gives_up_in_time():
    """Every read is in time, the whole answer never ends."""
    import socket

    with socket.socket() as dripping:
        dripping.bind(("127.0.0.1", 0))
        dripping.listen()
        stop = threading.Event()

        def drip():
            connection, _ = dripping.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while not stop.wait(0.02):
                    try:
                        connection.sendall(b" ")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            url = f"http://127.0.0.1:{dripping.getsockname()[1]}"
            with chain_at(url, seconds=0.2) as chain, pytest.raises(ChainError, match=r"no whole answer in 0.2 s"):
                chain.head()
        finally:
            stop.set()
            thread.join()


def test_chain__with_a_dead_rpc__says_what_to_do():
    with (
        chain_at(unused_url()) as chain,
        pytest.raises(ChainError, match="start the chain, or name another with --rpc"),
    ):
        chain.head()


def test_chain__with_a_silent_rpc__gives_up_in_time():
    import socket

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with chain_at(url, seconds=0.1) as chain, pytest.raises(ChainError, match=r"no whole answer in 0\.1 s"):
            chain.head()


def test_connect__with_a_deployment__knows_its_chain(world):
    chain = connect(Settings(home=world.home, rpc_url=world.url))
    try:
        assert chain.chain_id == 31337
        assert chain.head().hash == world.chain.head().hash
        assert chain.code(world.registry.address)
        assert chain.code(person("nobody").address) == b""
    finally:
        chain.close()


def test_connect__with_another_chain_id__names_both(world, tmp_path):
    document = json.loads((world.home / "deployments" / "31337.json").read_text())
    (tmp_path / "other.json").write_text(json.dumps(document | {"chain_id": 8453}))
    with pytest.raises(WrongChainError, match="serves chain 31337, the deployment file names chain 8453"):
        connect(Settings(home=world.home, rpc_url=world.url, deployment=tmp_path / "other.json"))


def test_block__that_is_not_there__says_so(world):
    with pytest.raises(ChainError, match="Block 999999 is not on the chain at http://127"):
        world.chain.block(999_999)


def test_view__before_the_contract_was_there__says_so(world):
    with pytest.raises(ChainError, match="gave no answer of the expected form"):
        NodeRegistry(world.chain).node_count(at=0)


def test_client__of_a_contract_the_deployment_lacks__says_so(world):
    contracts = {name: one for name, one in world.chain.deployment.contracts.items() if name != "RoutingLens"}
    chain = Chain(world.chain.provider, Deployment(31337, "0x" + "0" * 64, contracts))
    with pytest.raises(DeploymentError, match="names no RoutingLens: deploy again"):
        RoutingLens(chain)


def test_artifact__that_is_not_there__says_how_to_make_it():
    with pytest.raises(ChainError, match="write it with `make artifacts`"):
        artifact("Nothing")


def test_send__that_is_not_mined_in_time__names_the_transaction(world):
    sender = Sender(world.chain, world.by("alice").account, seconds=0.2)
    world.rpc("evm_setAutomine", False)
    try:
        with pytest.raises(UnconfirmedError, match="it may still be mined") as late:
            sender.send(world.token.approve(world.registry.address, 1))
    finally:
        world.rpc("evm_setAutomine", True)
        world.rpc("evm_mine")

    assert world.chain.web3.eth.get_transaction_receipt(late.value.transaction)["status"] == 1


def test_send__whose_confirmation_is_lost__names_the_transaction_and_sends_no_other(world, monkeypatch):
    """The transaction lands, the answer does not: nobody may send it twice without knowing."""
    sender = Sender(world.chain, world.by("alice").account)
    post, sent = world.chain.provider._post, []

    def lose_answer(content):
        answer = post(content)
        if b"eth_sendRawTransaction" in content:
            sent.append(answer)
            raise NoAnswerError("The RPC does not answer.")
        return answer

    monkeypatch.setattr(world.chain.provider, "_post", lose_answer)
    with pytest.raises(UnconfirmedError, match="look for it before sending another, it may still be mined") as lost:
        sender.send(world.token.approve(world.registry.address, 1))

    assert len(sent) == 1
    assert world.chain.web3.eth.wait_for_transaction_receipt(lost.value.transaction, 30, 0.01)["status"] == 1


def test_send__at_a_price_that_no_honest_rpc_asks__is_refused(world):
    sender = Sender(world.chain, world.by("alice").account)
    world.rpc("anvil_setNextBlockBaseFeePerGas", hex(10**14))
    world.rpc("evm_mine")
    try:
        with pytest.raises(ChainError, match="wei for a unit of gas, more than 10000000000000"):
            sender.send(world.token.approve(world.registry.address, 1))
    finally:
        world.rpc("anvil_setNextBlockBaseFeePerGas", hex(10**9))
        world.rpc("evm_mine")


def test_send__refused_only_when_mined__gives_the_reason(world):
    """Two writes pass their estimates side by side; the second is refused once the first is mined."""
    from counterfoil.chain.errors import RevertedError

    client = world.by("racer")
    receipt = world.decide("racer")
    world.rpc("evm_setAutomine", False)
    outcome = []

    def race():
        with pytest.raises(RevertedError) as refused:
            world.open("racer", receipt)
        outcome.append(refused.value)

    moved = world.registry.set_active(receipt.choice, False)
    operator = world.by(f"operator{receipt.choice - 1}")
    gas = {"from": operator.account.address, "gasPrice": 10**11, "gas": 200_000, "chainId": 31337}
    gas["nonce"] = world.chain.web3.eth.get_transaction_count(operator.account.address)
    raw = operator.account.sign_transaction(moved.function.build_transaction(gas)).raw_transaction
    thread = threading.Thread(target=race)
    try:
        pending = "0x0"
        thread.start()
        while pending != "0x1":
            pending = world.rpc("txpool_status")["pending"]
        world.chain.web3.eth.send_raw_transaction(raw)
        world.rpc("evm_mine")
        thread.join()
    finally:
        world.rpc("evm_setAutomine", True)
        world.by(f"operator{receipt.choice - 1}").send(world.registry.set_active(receipt.choice, True))

    assert client.address
    assert outcome[0].reason == "sessions: service not routable"


def coded(reason):
    """The data of a revert with a reason."""
    return "0x08c379a0" + encode(["string"], [reason]).hex()


@pytest.mark.parametrize(
    ("data", "message", "reason"),
    [
        ("0x08c379a0" + "zz", "execution reverted", ""),
        ("0x08c379a0" + "00" * 8, "execution reverted", ""),
        (None, "execution reverted: a: b", "a: b"),
        ("0x", "execution reverted", ""),
        (None, None, ""),
        (None, "execution reverted: " + "x" * 500, "x" * 200),
        (None, "execution reverted: a\x1b[31mb\x9b\u202e", "a\ufffd[31mb\ufffd\ufffd"),
        (coded("a\x1b]0;b\x07"), "execution reverted", "a\ufffd]0;b\ufffd"),
    ],
)
def test_revert_reason__with_any_data__is_bounded_text(data, message, reason):
    assert revert_reason(ContractLogicError(message, data=data)) == reason


def test_session__that_does_not_exist__has_status_none(world):
    assert SessionManager(world.chain).session("0x" + "77" * 32).status == 0


def test_call__refused_by_a_contract_or_an_rpc_with_escape_codes__says_it_in_printable_words():
    error = {"code": 3, "message": "execution reverted", "data": coded("\x1b[2Jpwned")}
    pruned = {"code": -32000, "message": "missing trie node \x1b[2J\x9b31m"}
    for one, words in ((error, "refused"), (pruned, "no longer holds that state")):
        body = json.dumps({"jsonrpc": "2.0", "id": 0, "error": one}).encode()
        with server((200, body)) as url, chain_at(url) as chain, pytest.raises(ChainError, match=words) as refused:
            chain.code("0x" + "11" * 20)
        assert str(refused.value).isprintable()


def test_chain__with_proxies_in_the_environment__asks_the_rpc_itself(world, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, unused_url())
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with chain_at(world.url) as chain:
        assert chain.chain_id == 31337
