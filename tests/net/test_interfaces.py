"""The addresses that a broker on every address announces: no loopback or link-local ones."""

import socket
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest

from headwater.net import interfaces
from headwater.net.interfaces import dialable, own_addresses

LO = "00000000000000000000000000000001 01 80 10 80       lo\n"
LINK_LOCAL = "fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n"
GLOBAL = "20010db8000000000000000000000007 02 40 00 80     eth0\n"


def test_every_address_can_be_bound_and_none_is_of_this_machine_or_link_alone() -> None:
    for address in own_addresses():
        known = ip_address(address)
        assert not known.is_loopback and not known.is_link_local and not known.is_unspecified
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as bound:
            bound.bind((address, 0))


@pytest.mark.skipif(sys.platform != "linux", reason="the table is Linux's")
def test_of_ipv6_those_of_global_scope_are_named(tmp_path: Path) -> None:
    table = tmp_path / "if_inet6"
    table.write_text(LO + LINK_LOCAL + GLOBAL + "not a row\n")
    assert [address for address in own_addresses(str(table)) if ":" in address] == ["2001:db8::7"]
    assert [address for address in own_addresses(str(tmp_path / "none")) if ":" in address] == []


def test_where_interfaces_are_not_listed_the_ways_out_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = own_addresses()
    monkeypatch.setattr(sys, "platform", "elsewhere")
    assert set(own_addresses()) <= set(listed)
    monkeypatch.setattr(interfaces, "OUTSIDE", ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "no address")))
    assert own_addresses() == ()


def test_a_listener_on_every_address_is_dialled_at_those_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interfaces, "own_addresses", lambda: ("192.0.2.7",))
    assert [dialable(host) for host in ("", "0.0.0.0", "::")] == [("192.0.2.7",)] * 3
    assert dialable("127.0.0.1") == ("127.0.0.1",)
