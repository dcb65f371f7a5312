"""The names in a certificate, in the order in which they are tried as user names."""

from typing import cast

from headwater.net.certificate_names import names_in
from headwater.net.tls import TlsLayer


class Shown:
    """A TLS layer's view of the peer's certificate."""

    def __init__(self, **names: object) -> None:
        self.peer_names = names


def names(**shown: object) -> tuple[str, ...]:
    return names_in(cast(TlsLayer, Shown(**shown)))


def test_emails_come_first_then_dns_names_then_uris_then_the_subject() -> None:
    alternatives = (("DNS", "a.example"), ("URI", "spiffe://x"), ("email", "derek@nats.io"), ("IP Address", "::1"))
    subject = ((("countryName", "US"),), (("organizationName", "NATS, Inc."),), (("commonName", "derek"),))
    assert names(subjectAltName=alternatives, subject=subject) == (
        "derek@nats.io",
        "a.example",
        "spiffe://x",
        "CN=derek,O=NATS\\, Inc.,C=US",
    )


def test_parts_of_one_name_stay_together() -> None:
    assert names(subject=((("commonName", "#a"), ("unknownName", "b")),)) == ("CN=\\#a+unknownName=b",)


def test_no_certificate_gives_no_names() -> None:
    assert names_in(None) == ()
    assert names() == ()
