"""The addresses of this machine that other machines can dial; a broker that listens on every address announces them.

Python's library does not list interfaces. On Linux this module uses `ioctl` (one IPv4 address per interface) and /proc
(IPv6); elsewhere it finds only the source addresses of outgoing packets, one per family.

Loopback and link-local addresses are left out: other machines cannot reach them.
"""

import socket
import sys

from headwater.net.address import ANY_ADDRESS

SIOCGIFADDR = 0x8915  # Linux: the IPv4 address of an interface
NAME_SIZE = 16  # bytes of an interface name, with the final zero
IPV6_TABLE = "/proc/net/if_inet6"
GLOBAL_SCOPE = "00"
# Reserved for documentation: no host has these addresses.
OUTSIDE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))


def dialable(host: str) -> tuple[str, ...]:
    """The hosts that others can dial for a listener on `host`: itself, or for every address those of this machine."""
    return own_addresses() if host in ANY_ADDRESS else (host,)


def own_addresses(table: str = IPV6_TABLE) -> tuple[str, ...]:
    """The addresses in the order of the interfaces, IPv4 first; empty if the machine has only loopback."""
    found = [*_ipv4(), *_ipv6(table)] if sys.platform == "linux" else _outgoing()
    return tuple(dict.fromkeys(address for address in found if not _is_local(address)))


def _ipv4() -> list[str]:
    import fcntl

    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(probe, SIOCGIFADDR, name.encode()[: NAME_SIZE - 1].ljust(40, b"\0"))
            except OSError:
                continue  # the interface has no address
            found.append(socket.inet_ntoa(answer[20:24]))
    return found


def _ipv6(table: str) -> list[str]:
    try:
        with open(table, encoding="ascii") as lines:
            rows = [line.split() for line in lines]
    except OSError:
        return []  # a system without IPv6
    digits = [row[0] for row in rows if len(row) == 6 and row[3] == GLOBAL_SCOPE]
    return [socket.inet_ntop(socket.AF_INET6, bytes.fromhex(each)) for each in digits]


def _outgoing() -> list[str]:
    found = []
    for family, outside in OUTSIDE:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((outside, 9))  # sends nothing
                found.append(str(probe.getsockname()[0]))
        except OSError:
            continue  # no route in this address family
    return found


def _is_local(address: str) -> bool:
    return address.startswith(("127.", "169.254.", "fe80:", "0.")) or address in ("::1", "::")
