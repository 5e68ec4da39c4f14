import socket
import threading

import pytest

from counterfoil.agent.endpoint import EndpointError, resolve


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "ftp://example.com",
        "file:///etc/passwd",
        "http://",
        "http://user:secret@example.com",
        "http://example.com:99999",
        "http://exa mple.com/\n",
        "http://" + "a" * 300,
        "http://[::1",
        "javascript:alert(1)",
        "http://exämple.com",
    ],
)
def test_resolve__with_a_string_that_is_no_plain_url__refuses(endpoint):
    with pytest.raises(EndpointError):
        resolve(endpoint, allow_private=True)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://127.0.0.1:9000",
        "http://localhost:9000",
        "http://10.1.2.3",
        "http://192.168.0.1",
        "http://169.254.169.254/latest",
        "http://[::1]:80",
        "http://[fd00::1]",
        "http://0.0.0.0",
        "http://224.0.0.1",
        "http://[::ffff:127.0.0.1]",
        "http://2130706433",
        "http://192.0.0.8",
        "http://[::ffff:10.0.0.1]",
        "http://[::127.0.0.1]",
        "http://[64:ff9b::7f00:1]",
        "http://[64:ff9b:1::a00:1]",
        "http://[2002:7f00:1::]",
        "http://[2002:a00:1::1]",
        "http://[2001:0:7f00:1::ffff:ffff]",
        "http://[2001:0:4136:e378:8000:63bf:f5ff:fffe]",
        "http://[fec0::1]",
        "http://[ff02::1]",
        "http://[::]",
    ],
)
def test_resolve__with_an_address_of_the_callers_network__refuses_unless_allowed(endpoint):
    with pytest.raises(EndpointError, match="private network"):
        resolve(endpoint, allow_private=False)
    assert resolve(endpoint, allow_private=True).url.startswith("http://")


def test_resolve__with_a_public_address__keeps_scheme_port_and_path():
    target = resolve("https://93.184.216.34:8443/v1/", allow_private=False)
    assert (target.url, target.host) == ("https://93.184.216.34:8443/v1", "93.184.216.34:8443")


def test_resolve__with_a_name__names_the_address_that_was_checked(monkeypatch):
    looked_up = []

    def lookup(host, port, **_):
        looked_up.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", port))]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    target = resolve("https://node.example", allow_private=False)
    assert (target.url, target.host) == ("https://93.184.216.34:443", "node.example")
    assert looked_up == ["node.example"]


def test_resolve__with_a_name_of_one_public_and_one_private_address__refuses(monkeypatch):
    def lookup(_, port, **__):
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*kind, ("93.184.216.34", port)), (*kind, ("10.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    with pytest.raises(EndpointError, match="private network"):
        resolve("https://node.example", allow_private=False)


def test_resolve__of_a_name_server_that_hangs__gives_up(monkeypatch):
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait())
    monkeypatch.setattr("counterfoil.agent.endpoint.LOOK_UP_SECONDS", 0.01)
    with pytest.raises(EndpointError, match=r"the host node\.example was not found in 0\.01 s"):
        resolve("https://node.example", allow_private=False)
    answered.set()
