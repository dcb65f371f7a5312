"""A callout service made of bytes, in the test's own thread: it reads a request, and answers as the test says."""

import base64
import json
from typing import Any

from nacl.public import Box, PrivateKey, PublicKey
from support.operator_chain import UNLIMITED_USER, Key, token
from support.raw_wire import dial

from headwater.model.nkey import NkeyKind, decode_nkey, encode_nkey

ISSUER, STRANGER = Key(NkeyKind.ACCOUNT, 50), Key(NkeyKind.ACCOUNT, 51)
CURVE = PrivateKey(bytes(range(32)))
XKEY = encode_nkey(NkeyKind.CURVE, bytes(CURVE.public_key))
SUBSCRIBE = b"SUB $SYS.REQ.USER.AUTH 1\r\n"


class Service:
    """Answers one request after the other. `authorization` holds the claims of the last one, `received` the header block."""

    def __init__(self, port: int, **login: object) -> None:
        self.link = dial(port, **(login or {"user": "auth", "pass": "auth"}))
        self.link.send(SUBSCRIBE)
        assert self.link.settle() == b""
        self.authorization: dict[str, Any] = {}
        self.received = b""

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *_: object) -> None:
        self.link.close()

    def request(self) -> bytes:
        """Read a request; returns the reply subject."""
        while not (line := self.link.receive_line()).startswith((b"MSG ", b"HMSG ")):
            assert line == b"PING\r\n", line
        words = line.split()
        body = self.link.receive(int(words[-1]) + 2)[:-2]
        if line.startswith(b"HMSG"):
            self.received, body = body[: int(words[-2])], body[int(words[-2]) :]
            xkey = self.received.partition(b"Nats-Server-Xkey: ")[2].split(b"\r\n")[0].decode()
            body = self._box(xkey).decrypt(body.removeprefix(b"xkv1"))
        part = body.decode().split(".")[1]
        self.authorization = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return words[3]

    def answer(self, reply: bytes, output: bytes) -> None:
        if output and self.received:
            xkey = self.authorization["nats"]["server_id"]["xkey"]
            output = b"xkv1" + bytes(self._box(xkey).encrypt(output))
        self.link.send(b"PUB %s %d\r\n%s\r\n" % (reply, len(output), output))

    def response(self, signer: Key = ISSUER, **changes: Any) -> bytes:
        """The service's JWT; `jwt` or `error` is in `changes`."""
        nats = {"type": "authorization_response", "version": 2, **changes.pop("nats", {})}
        claims = {"aud": self.authorization["nats"]["server_id"]["id"], **changes}
        return token(signer, claims.pop("sub", self.authorization["nats"]["user_nkey"]), nats, **claims).encode()

    def user(self, signer: Key = ISSUER, account: str = "APP", **changes: Any) -> str:
        """The JWT of the user of the request."""
        claims = {"aud": account, "name": "ann", **changes.pop("claims", {})}
        nats = {"type": "user", "version": 2, **UNLIMITED_USER, **changes}
        return token(signer, claims.pop("sub", self.authorization["nats"]["user_nkey"]), nats, **claims)

    @staticmethod
    def _box(xkey: str) -> Box:
        key = decode_nkey(xkey, NkeyKind.CURVE)
        assert key is not None
        return Box(CURVE, PublicKey(key))
