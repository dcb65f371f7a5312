"""The names in a client's certificate that may name a user (`verify_and_map`), in the order in which they are tried:
email addresses, DNS names, URIs, then the whole subject as one text, "CN=derek,O=NATS" (RFC 2253: last part first).
"""

from typing import TYPE_CHECKING

from headwater.net.layer import Layer

if TYPE_CHECKING:
    from headwater.net.tls import TlsLayer

_SHORT = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "postalCode": "POSTALCODE",
    "serialNumber": "SERIALNUMBER",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "domainComponent": "DC",
}


def names_on(layer: Layer | None) -> tuple[str, ...]:
    """`names_in` the TLS layer, if any, of a link with this layer."""
    if layer is None:
        return ()
    from headwater.net.tls import tls_of  # here: a broker without TLS does not load it

    return names_in(tls_of(layer))


def names_in(layer: "TlsLayer | None") -> tuple[str, ...]:
    """The names, in order; empty without a verified client certificate."""
    if layer is None:
        return ()
    shown = layer.peer_names
    alternatives = _pairs(shown.get("subjectAltName"))
    names = [value for wanted in ("email", "DNS", "URI") for kind, value in alternatives if kind == wanted]
    subject = shown.get("subject")
    parts = list(subject) if isinstance(subject, tuple) else []
    texts = ["+".join(f"{_SHORT.get(kind, kind)}={_escape(value)}" for kind, value in _pairs(part)) for part in parts]
    if texts:
        names.append(",".join(reversed(texts)))
    return tuple(names)


def _pairs(value: object) -> list[tuple[str, str]]:
    return [(str(kind), str(text)) for kind, text in value] if isinstance(value, tuple) else []


def _escape(value: str) -> str:
    escaped = "".join("\\" + letter if letter in ',+"\\<>;' else letter for letter in value)
    return "\\" + escaped if escaped.startswith(("#", " ")) else escaped
