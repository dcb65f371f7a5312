"""Certificates for tests, made anew for each run by trustme: an authority, a server, a client, and a stranger."""

from pathlib import Path
from typing import NamedTuple

import trustme


class Certificates(NamedTuple):
    """PEM files. `ca` vouches for `server` (127.0.0.1, localhost) and `client`; `stranger_ca` for `stranger`."""

    ca: Path
    server_cert: Path
    server_key: Path
    client_cert: Path
    client_key: Path
    stranger_ca: Path
    stranger_cert: Path
    stranger_key: Path


def make_certificates(directory: Path) -> Certificates:
    """Writes them all below `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    ca, stranger_ca = trustme.CA(), trustme.CA()
    ca.cert_pem.write_to_path(str(directory / "ca.pem"))
    stranger_ca.cert_pem.write_to_path(str(directory / "stranger-ca.pem"))
    issued = {
        "server": ca.issue_cert("127.0.0.1", "localhost"),
        "client": ca.issue_cert("derek@nats.io", common_name="derek"),
        "stranger": stranger_ca.issue_cert("mallory@example.org"),
    }
    for name, leaf in issued.items():
        leaf.private_key_pem.write_to_path(str(directory / f"{name}-key.pem"))
        leaf.cert_chain_pems[0].write_to_path(str(directory / f"{name}.pem"))
    paths = [directory / "ca.pem"]
    for name in ("server", "client"):
        paths += [directory / f"{name}.pem", directory / f"{name}-key.pem"]
    paths += [directory / "stranger-ca.pem", directory / "stranger.pem", directory / "stranger-key.pem"]
    return Certificates(*paths)
