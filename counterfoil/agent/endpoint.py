"""Where an agent's calls may go: an endpoint string from the registry is anybody's text."""

import ipaddress
import queue
import socket
import threading
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

MAX_ENDPOINT = 256
LOOK_UP_SECONDS = 5
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Entry = tuple[Any, ...]
# An IPv4 address stands in the last 32 bits of these, and a gateway may deliver there: NAT64 and IPv4-compatible.
_CARRIERS = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))
# Protocol assignments (RFC 6890) and local NAT64 (RFC 8215): not global, whatever this Python version says.
_ASSIGNED = ipaddress.IPv4Network("192.0.0.0/24")
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")


class EndpointError(ValueError):
    """An endpoint that is not called; the message says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """A checked endpoint: `url` names the address that was checked, so that no second look-up can lead elsewhere.

    `host` is for the Host header, `name` for the certificate.
    """

    url: str
    host: str
    name: str


def resolve(endpoint: str, *, allow_private: bool) -> Target:
    """Check an endpoint and pin its address.

    Raises EndpointError for anything but http and https, for credentials, and for an address in a private, loopback or
    otherwise special network unless `allow_private`.
    """
    if len(endpoint) > MAX_ENDPOINT or not endpoint.isascii() or not endpoint.isprintable():
        raise EndpointError("the endpoint is not a plain URL of at most 256 characters")
    try:
        parts = urlsplit(endpoint)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise EndpointError("the endpoint cannot be read as a URL") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise EndpointError("the endpoint is no http or https URL without credentials")
    address = _address(parts.hostname, port, allow_private=allow_private)
    path = parts.path.rstrip("/")
    return Target(f"{parts.scheme}://{address}:{port}{path}", parts.netloc, parts.hostname)


def _address(host: str, port: int, *, allow_private: bool) -> str:
    found = _look_up(host, port)
    addresses = [ipaddress.ip_address(str(entry[4][0]).split("%")[0]) for entry in found]
    if not allow_private and not all(_is_public(address) for address in addresses):
        raise EndpointError(f"the host {host} is in a private network; allow that if it is meant")
    chosen = addresses[0]
    return f"[{chosen}]" if chosen.version == 6 else str(chosen)


def _look_up(host: str, port: int) -> list[_Entry]:
    # The system's look-up keeps its own time: it runs aside, and is left alone where that is too long.
    answer: queue.SimpleQueue[list[_Entry] | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answer.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            answer.put(error)

    threading.Thread(target=ask, daemon=True, name="look-up").start()
    try:
        found = answer.get(timeout=LOOK_UP_SECONDS)
    except queue.Empty:
        raise EndpointError(f"the host {host} was not found in {LOOK_UP_SECONDS} s") from None
    if isinstance(found, Exception):
        raise EndpointError(f"the host {host} has no address") from found
    return found


def _is_public(address: Address) -> bool:
    """Whether an address, and every IPv4 address that it carries inside, is one of the open Internet."""
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast and address not in _ASSIGNED
    carried = _carried(address)
    if carried:
        return all(map(_is_public, carried))
    return address.is_global and not (address.is_multicast or address.is_site_local or address in _LOCAL_NAT64)


def _carried(address: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if any(address in network for network in _CARRIERS):
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [one for one in found if one is not None]
