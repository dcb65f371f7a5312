"""INFO and CONNECT: the two JSON documents that open a connection (client protocol document, "INFO" and "CONNECT").

Unknown fields are ignored, as nats-server does, so that newer peers can talk to us. Absent fields take the values that
the *receiver* assumes: a CONNECT without `verbose` and `pedantic` means both are true. Both are read as Go reads JSON.

Two documents in the life of a connection: the standard library's JSON does, and costs a server's start 45 ms less.
"""

import json as json_documents
import re
from typing import Any

from headwater.errors import RemoteProtocolError
from headwater.model.record import Record

PROTOCOL_DYNAMIC = 1  # CONNECT.protocol: the client understands asynchronous INFO


class ServerInfo(Record, frozen=False):
    """What a server says of itself. Sizes in bytes, ports as numbers."""

    server_id: str = ""
    server_name: str = ""
    version: str = ""
    proto: int = 0
    git_commit: str = ""
    go: str = ""
    host: str = ""
    port: int = 0
    headers: bool = False
    auth_required: bool = False
    tls_required: bool = False
    tls_verify: bool = False
    tls_available: bool = False
    max_payload: int = 0
    jetstream: bool = False
    client_id: int = 0
    client_ip: str = ""
    nonce: str = ""
    cluster: str = ""
    cluster_dynamic: bool = False
    domain: str = ""
    connect_urls: tuple[str, ...] = ()
    ws_connect_urls: tuple[str, ...] = ()
    ldm: bool = False
    connect_info: bool = False
    remote_account: str = ""
    acc_is_sys: bool = False
    api_lvl: int = 0
    xkey: str = ""


class ConnectOptions(Record, frozen=False, secret=("user", "password", "auth_token", "jwt", "nkey", "sig")):
    """What a client says of itself and wants. Credentials are None when not given, and never in a `repr`: it may be
    logged.
    """

    verbose: bool = True
    pedantic: bool = True
    echo: bool = True
    headers: bool = False
    no_responders: bool = False
    tls_required: bool = False
    protocol: int = 0
    name: str = ""
    lang: str = ""
    version: str = ""
    user: str | None = None
    password: str | None = None  # `pass` on the wire
    auth_token: str | None = None
    jwt: str | None = None
    nkey: str | None = None
    sig: str | None = None
    account: str | None = None
    new_account: bool = False


_CONNECT_NAMES = {("pass" if name == "password" else name): name for name in ConnectOptions._defaults}  # wire: field
_INFO_NAMES = {name: name for name in ServerInfo._defaults}
_encode = json_documents.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode_info(info: ServerInfo) -> bytes:
    """The whole op, `INFO {json} \\r\\n`; nats-server writes the space before CRLF, and so do we."""
    defaults = ServerInfo._defaults
    told = {name: value for name, value in info.__dict__.items() if value != defaults[name] or name == "headers"}
    return b"INFO " + _encode(told).encode() + b" \r\n"


def decode_info(json: bytes) -> ServerInfo:
    """Raises RemoteProtocolError when the argument of INFO is not the JSON object that it should be."""
    try:
        return ServerInfo(**_typed(_read_as_go_does(json, _INFO_NAMES), ServerInfo._defaults))
    except (ValueError, RecursionError) as error:
        raise RemoteProtocolError(f"INFO with an argument that cannot be read: {error}", value=json[:200]) from error


def encode_connect(options: ConnectOptions) -> bytes:
    """The whole op, `CONNECT {json}\\r\\n`."""
    state = options.__dict__
    told = {wire: state[name] for wire, name in _CONNECT_NAMES.items() if state[name] is not None}
    return b"CONNECT " + _encode(told).encode() + b"\r\n"


def decode_connect(json: bytes) -> ConnectOptions:
    """Raises RemoteProtocolError when the argument of CONNECT cannot be read; `null` counts as `{}`, as in nats-server."""
    if json.strip() == b"null":
        return ConnectOptions()
    try:
        return ConnectOptions(**_typed(_read_as_go_does(json, _CONNECT_NAMES), ConnectOptions._defaults))
    except (ValueError, RecursionError) as error:
        # The document may hold a password: neither this error nor its cause may quote it.
        raise RemoteProtocolError(f"CONNECT with an argument that cannot be read: {type(error).__name__}") from None


def _typed(found: dict[str, object], defaults: dict[str, object]) -> dict[str, Any]:
    """The same when each value is of its field's kind: that of its default, or text. Raises ValueError otherwise."""
    for name, value in found.items():
        default = defaults[name]
        if isinstance(default, tuple):
            if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                raise ValueError(f"{name} is not a list of strings")
            found[name] = tuple(value)
        elif type(value) is not (str if default is None else type(default)):
            raise ValueError(f"{name} is of the wrong type")
    return found


def _read_as_go_does(json: bytes, names: dict[str, str]) -> dict[str, object]:
    """The known fields. Go's decoder is lenient about the case of keys, null for "not given", bytes that are no UTF-8,
    any depth.
    """
    text = json.decode("utf-8", "replace")
    try:
        found = json_documents.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        found = json_documents.loads(_without_depth(text), parse_constant=_refuse_constant)
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return {
        names[key.lower()]: _printable(value)
        for key, value in found.items()
        if value is not None and key.lower() in names
    }


def _printable(value: object) -> object:
    """JSON can spell half of a surrogate pair, which no other text can hold."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _without_depth(text: str) -> str:
    """The document with each array and object in it replaced by an empty array: no field of ours holds one.

    Raises ValueError for brackets that do not match. What was between them is not looked at otherwise.
    """
    kept: list[str] = []
    closers: list[str] = []
    for piece in re.findall(r'"(?:[^"\\]|\\.)*"|[][{}]|[^][{}"]+|"', text):
        if len(closers) <= 1 and not (closers and piece in "[{"):
            kept.append(piece)
        if piece in "[{":
            closers.append("]" if piece == "[" else "}")
        elif piece in "]}":
            if not closers or closers.pop() != piece:
                raise ValueError("a bracket without its counterpart")
            if len(closers) == 1:
                kept.append("[]")
    return "".join(kept)


def _refuse_constant(name: str) -> object:
    raise ValueError(name)  # NaN and Infinity are Python's, not JSON's
