"""Reads and writes addresses in URLs and messages.

`urllib.parse` handles all kinds of URLs, but importing it costs a server half a mebibyte. The URL of a route is
`scheme://user:password@host:port`; anything after that is ignored.
"""

from typing import NamedTuple

LARGEST_PORT = 65_535
ANY_ADDRESS = ("", "0.0.0.0", "::")  # of a listener on every interface


class UrlAddress(NamedTuple):
    """The address in a URL. `host` is in lower case and without brackets, "" if absent; `port` is None if absent.

    `user` and `password` are percent-decoded; `password` is None if absent.
    """

    host: str
    port: int | None
    user: str
    password: str | None


def url_address(url: str) -> UrlAddress:
    """Parse `url`, or `host:port` alone. Raises ValueError for anything else; the error does not quote the URL."""
    _, found, rest = url.partition("//")
    place = rest if found else url
    for end in "/?#":
        place = place.partition(end)[0]
    credentials, _, place = place.rpartition("@")
    user, colon, password = credentials.partition(":")
    host, port = _host_and_port(place)
    name, percent, zone = host.partition("%")  # a link-local address may have a `%interface` suffix
    return UrlAddress(name.lower() + percent + zone, port, _decoded(user), _decoded(password) if colon else None)


def _host_and_port(place: str) -> tuple[str, int | None]:
    if place.startswith("["):
        host, bracket, port = place[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise ValueError("an address whose brackets do not match")
        port = port[1:]
    else:
        host, _, port = place.partition(":")
        if ":" in port or "[" in host or "]" in host:
            raise ValueError("an IPv6 address stands in brackets")
    if not port:
        return host, None
    if not (port.isascii() and port.isdigit()) or len(port) > 5 or int(port) > LARGEST_PORT:
        raise ValueError("a port is a number up to 65535")
    return host, int(port)


def announced(configured: str, port: int) -> str:
    """The `host:port` to announce for a configured `host:port` or `host`: with the listener's `port` where that names
    none, or one that cannot be dialled (0, -1). Raises ValueError for what is no address."""
    host, named = _host_and_port(configured.removesuffix(":-1"))
    if not host:
        raise ValueError("an address needs a host")
    return f"{bracketed(host)}:{named or port}"


def _decoded(text: str) -> str:
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text)


def bracketed(host: str) -> str:
    """`host` in the form before `:port`: an IPv6 address gets brackets, unless it has them."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def reachable(host: str) -> str:
    """The host to connect to, bracketed, for that of a listener: for one on every interface, this machine."""
    return bracketed({"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host))


def plain_host(host: str) -> str:
    """The usual form of a peer's address: an IPv4 address on a dual-stack socket loses its `::ffff:`."""
    return host[7:] if host.startswith("::ffff:") and "." in host else host
