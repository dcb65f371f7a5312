"""INFO, field by field, as nats-server and ours send it for the same file: at the start, and behind the first PONG."""

from pathlib import Path
from typing import Any

import pytest
from support.certificates import make_certificates
from support.configured_servers import KINDS, serve
from support.raw_wire import RawLink, connect_op, read_info
from support.websocket_wire import WebSocketLink

pytestmark = pytest.mark.interop

OWN = {
    "server_id",
    "server_name",
    "git_commit",
    "go",
    "port",
    "client_id",
    "nonce",
    "xkey",
    "connect_urls",
    "remote_account",
    "api_lvl",
}
"""What is each server's own; connect_urls: ours names its address also where that is loopback; api_lvl: what each has."""

CONFIGS = {
    "plain": "",
    "named": "server_name: here",
    "jetstream": 'jetstream {{ store_dir: "{directory}/js", domain: "hub" }}',
    "user": "authorization {{ user: u, password: p }}",
    "default user": "no_auth_user: u, authorization {{ users: [{{user: u, password: p}}] }}",
    "accounts": "accounts {{ A {{ users: [{{user: u, password: p}}] }} }}",
    "limits": "max_payload: 1000, no_header_support: true",
    "cluster": 'cluster {{ name: c, listen: "127.0.0.1:-1" }}',
    "websocket": 'websocket {{ listen: "127.0.0.1:-1", no_tls: true }}',
    "tls": 'tls {{ cert_file: "{cert}", key_file: "{key}" }}',
    "tls, or not": 'tls {{ cert_file: "{cert}", key_file: "{key}" }}, allow_non_tls: true',
}


def infos(kind: str, directory: Path, name: str, config: str) -> list[dict[str, Any]]:
    """The first INFO, and where no TLS is needed the one behind the first PONG."""
    with serve(kind, directory, f"listen: 127.0.0.1:-1\n{config}") as server:
        dial = WebSocketLink(server.websocket_port) if name == "websocket" else RawLink(server.port)
        with dial as link:
            found = [read_info(link.greeting)]
            if name != "tls":
                link.send(connect_op(user="u", protocol=1, headers=False, **{"pass": "p"}) + b"PING\r\n")
                link.receive_until(b"PONG\r\n")
                found.append(read_info(link.receive_line()))
    return [
        {key: "" if key in OWN else value for key, value in info.items() if key != "connect_urls"} for info in found
    ]


@pytest.mark.parametrize("name", CONFIGS)
def test_info_has_the_same_fields_with_the_same_values(tmp_path: Path, name: str) -> None:
    certificates = make_certificates(tmp_path)
    real, ours = (
        infos(
            kind,
            tmp_path / kind,
            name,
            CONFIGS[name].format(directory=tmp_path / kind, cert=certificates.server_cert, key=certificates.server_key),
        )
        for kind in KINDS
    )
    assert ours == real
