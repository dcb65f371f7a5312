"""TLS as NATS has it, against nats-server and ours with the same file: behind INFO, mutual, first, by name, and refused.

Whoever does not go along is cut off without a word, and the server serves others afterwards.
"""

import asyncio
import hashlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from support.certificates import Certificates, make_certificates
from support.configured_servers import KINDS, Running, ServerShelf, shelf
from support.raw_wire import RawLink, closed, connect_op, read_info, still_open
from support.tls_wire import TlsLink, trusting

__all__ = ["shelf"]

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    yield str(request.param)


def tls_block(certificates: Certificates, *more: str) -> str:
    files = [f'cert_file: "{certificates.server_cert}"', f'key_file: "{certificates.server_key}"']
    return "tls { " + "\n".join([*files, *more]) + " }\n"


def asks_clients(certificates: Certificates, *more: str) -> str:
    return tls_block(certificates, f'ca_file: "{certificates.ca}"', "verify: true", *more)


def prove_service_over_tls(server: Running, context: ssl.SSLContext, *, first: bool = False) -> None:
    with TlsLink(server.port, context, first=first) as link:
        link.send(connect_op() + b"SUB a 1\r\nPUB a 2\r\nok\r\n")
        assert link.settle() == b"MSG a 1 2\r\nok\r\n"


@pytest.mark.parametrize("newest", [True, False], ids=["newest", "1.2"])
def test_a_client_upgrades_behind_info(shelf: ServerShelf, kind: str, certificates: Certificates, newest: bool) -> None:
    server = shelf.get(kind, tls_block(certificates))
    payload = bytes(range(256)) * 2000
    with TlsLink(server.port, trusting(certificates, newest=newest)) as link:
        info = read_info(link.greeting)
        assert info["tls_required"] is True
        assert "tls_verify" not in info
        assert link.version == ("TLSv1.3" if newest else "TLSv1.2")
        link.send(connect_op(tls_required=True) + b"SUB a 1\r\nPUB a %d\r\n%b\r\n" % (len(payload), payload))
        assert link.settle() == b"MSG a 1 %d\r\n%b\r\n" % (len(payload), payload)


def test_old_versions_of_tls_are_not_spoken(shelf: ServerShelf, kind: str, certificates: Certificates) -> None:
    server = shelf.get(kind, tls_block(certificates))
    context = trusting(certificates)
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        TlsLink(server.port, context)
    prove_service_over_tls(server, trusting(certificates))


@pytest.mark.parametrize(
    "sent", [connect_op() + b"PING\r\n", b"\x15\x03\x01\x00\x02\x02\x28", b"\x16\x03\x01" + b"\xff" * 500]
)
def test_clear_text_where_tls_is_required_is_cut_off_without_a_word(
    shelf: ServerShelf, kind: str, certificates: Certificates, sent: bytes
) -> None:
    server = shelf.get(kind, tls_block(certificates))
    with RawLink(server.port) as link:
        link.send(sent)
        assert b"ERR" not in link.receive_end(), "no NATS; an alert of TLS is fine"
    prove_service_over_tls(server, trusting(certificates))


def test_silence_is_cut_off_when_the_time_for_the_handshake_is_over(
    shelf: ServerShelf, kind: str, certificates: Certificates
) -> None:
    server = shelf.get(kind, tls_block(certificates, "timeout: 1"))
    with RawLink(server.port) as link:
        assert link.receive_end() == b""
    prove_service_over_tls(server, trusting(certificates))


def test_a_server_that_verifies_takes_only_clients_that_its_ca_vouches_for(
    shelf: ServerShelf, kind: str, certificates: Certificates
) -> None:
    server = shelf.get(kind, asks_clients(certificates))
    with TlsLink(server.port, trusting(certificates, owner="client")) as link:
        assert read_info(link.greeting)["tls_verify"] is True
        assert link.answer(connect_op()) == still_open()
    for owner in ("", "stranger"):
        # With TLS 1.3 the client is done before the server has looked at its certificate.
        with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
            with TlsLink(server.port, trusting(certificates, owner=owner)) as link:
                link.send(connect_op())
                link.settle()
    prove_service_over_tls(server, trusting(certificates, owner="client"))


def distinguished_name(certificate: Path) -> str:
    """The subject as Go writes it: the last part first."""
    subject = ssl._ssl._test_decode_cert(str(certificate))["subject"]  # type: ignore[attr-defined]
    short = {"commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU"}
    return ",".join(f"{short[kind]}={value}" for part in reversed(subject) for kind, value in part)


@pytest.mark.parametrize("by", ["email", "subject"])
def test_a_certificate_can_name_the_user(shelf: ServerShelf, kind: str, certificates: Certificates, by: str) -> None:
    name = "derek@nats.io" if by == "email" else distinguished_name(certificates.client_cert)
    users = f'authorization {{ users = [ {{ user: "{name}", permissions: {{ publish: "mine" }} }} ] }}'
    server = shelf.get(kind, asks_clients(certificates, "verify_and_map: true") + users)
    with TlsLink(server.port, trusting(certificates, owner="client")) as link:
        assert link.answer(connect_op()) == still_open()
        refused = b"-ERR 'Permissions Violation for Publish to \"other\"'\r\n"
        assert link.answer(b"PUB mine 1\r\nx\r\nPUB other 1\r\nx\r\n") == still_open(refused)


def test_a_certificate_that_names_nobody_is_not_enough(
    shelf: ServerShelf, kind: str, certificates: Certificates
) -> None:
    users = "authorization { users = [ { user: somebody.else, password: p } ] }"
    server = shelf.get(kind, asks_clients(certificates, "verify_and_map: true") + users)
    for shown in ({}, {"user": "somebody.else", "pass": "p"}):
        with TlsLink(server.port, trusting(certificates, owner="client")) as link:
            assert link.answer(connect_op(**shown)) == closed(b"-ERR 'Authorization Violation'\r\n")


def key_fingerprint(certificate: Path) -> str:
    public = x509.load_pem_x509_certificate(certificate.read_bytes()).public_key()
    info = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(info).hexdigest()


@pytest.mark.parametrize("pinned", [True, False])
def test_certificates_can_be_pinned(shelf: ServerShelf, kind: str, certificates: Certificates, pinned: bool) -> None:
    taken = key_fingerprint(certificates.client_cert if pinned else certificates.stranger_cert)
    server = shelf.get(kind, asks_clients(certificates, f'pinned_certs: ["{taken}"]'))
    if pinned:
        prove_service_over_tls(server, trusting(certificates, owner="client"))
        return
    with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
        with TlsLink(server.port, trusting(certificates, owner="client")) as link:
            link.send(connect_op())
            link.settle()


def test_handshake_first_says_nothing_before(shelf: ServerShelf, kind: str, certificates: Certificates) -> None:
    server = shelf.get(kind, tls_block(certificates, "handshake_first: true", "timeout: 1"))
    prove_service_over_tls(server, trusting(certificates), first=True)
    with socket.create_connection(("127.0.0.1", server.port), 5) as silent:
        assert silent.recv(1000) == b""


@pytest.mark.parametrize("first", [True, False])
def test_handshake_first_auto_takes_both_kinds_of_client(
    shelf: ServerShelf, kind: str, certificates: Certificates, first: bool
) -> None:
    server = shelf.get(kind, tls_block(certificates, 'handshake_first: "500ms"'))
    prove_service_over_tls(server, trusting(certificates), first=first)


def test_where_clear_text_is_allowed_both_are_spoken(shelf: ServerShelf, kind: str, certificates: Certificates) -> None:
    server = shelf.get(kind, tls_block(certificates) + "allow_non_tls: true")
    prove_service_over_tls(server, trusting(certificates))
    with RawLink(server.port) as link:
        info = read_info(link.greeting)
        assert info["tls_available"] is True
        assert "tls_required" not in info
        assert link.answer(connect_op()) == still_open()


def test_credentials_are_asked_for_inside_tls_too(shelf: ServerShelf, kind: str, certificates: Certificates) -> None:
    users = 'authorization { user: derek, password: "p", timeout: 1 }'
    server = shelf.get(kind, tls_block(certificates) + users)
    context = trusting(certificates)
    with TlsLink(server.port, context) as link:
        assert link.answer(connect_op(**{"user": "derek", "pass": "p"})) == still_open()
    with TlsLink(server.port, context) as link:
        assert link.answer(connect_op()) == closed(b"-ERR 'Authorization Violation'\r\n")
    with TlsLink(server.port, context) as link:
        assert link.receive_end() == b"-ERR 'Authentication Timeout'\r\n"


def test_nats_py_speaks_tls_with_it(shelf: ServerShelf, kind: str, certificates: Certificates) -> None:
    server = shelf.get(kind, asks_clients(certificates))

    async def main() -> None:
        context = trusting(certificates, owner="client")
        async with asyncio.timeout(20):
            client = await nats.connect(f"tls://localhost:{server.port}", tls=context, allow_reconnect=False)
            subscription = await client.subscribe("a")
            await client.publish("a", bytes(100_000))
            assert (await subscription.next_msg(5)).data == bytes(100_000)
            await client.close()

    asyncio.run(main())


def test_files_that_cannot_be_used_stop_the_start(certificates: Certificates, tmp_path: Path) -> None:
    from support.embedded_broker import EmbeddedBroker, options_of

    from headwater.errors import ConfigError

    file = tmp_path / "server.conf"
    file.write_text(f'tls {{ cert_file: "{certificates.server_cert}", key_file: "{certificates.client_key}" }}')
    with pytest.raises(ConfigError, match=r"client-key\.pem"):
        EmbeddedBroker(options_of(file))
