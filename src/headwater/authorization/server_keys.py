"""A broker's own key pairs, which sign requests to a callout service, and encrypt them if the service has a curve key.

    sealed = "xkv1" + 24 random bytes + NaCl box (X25519, XSalsa20, Poly1305), as in the nkeys library

They are generated at each start, as in nats-server. The cryptography is PyNaCl's (extra `auth`).
"""

import base64
import json
import os
from typing import Any

from headwater.errors import EnvironmentProblem, RemoteProtocolError
from headwater.model.nkey import NkeyKind, decode_nkey, encode_nkey

_SEALED = b"xkv1"
_NONCE_BYTES = 24


class ServerKeys:
    """`server_id` and `xkey` are the public halves. Raises EnvironmentProblem without PyNaCl."""

    def __init__(self) -> None:
        try:
            from nacl.public import PrivateKey
            from nacl.signing import SigningKey
        except ImportError as error:
            raise EnvironmentProblem("nkeys and JWTs need PyNaCl", hint="pip install 'headwater[auth]'") from error
        self._signing = SigningKey.generate()
        self._curve = PrivateKey.generate()
        self.server_id = encode_nkey(NkeyKind.SERVER, bytes(self._signing.verify_key))
        self.xkey = encode_nkey(NkeyKind.CURVE, bytes(self._curve.public_key))

    def sign(self, claims: dict[str, Any]) -> str:
        """A JWT with these claims, signed by this server."""
        head = _encoded({"typ": "JWT", "alg": "ed25519-nkey"})
        signed = f"{head}.{_encoded({**claims, 'iss': self.server_id})}"
        signature = self._signing.sign(signed.encode("ascii")).signature
        return f"{signed}.{base64.urlsafe_b64encode(signature).decode('ascii').rstrip('=')}"

    def seal(self, message: bytes, receiver: str) -> bytes:
        """Encrypt for the owner of the public curve nkey `receiver`."""
        nonce = os.urandom(_NONCE_BYTES)
        return _SEALED + bytes(self._box(receiver).encrypt(message, nonce))

    def open(self, sealed: bytes, sender: str) -> bytes:
        """Decrypt a message that the owner of the curve nkey `sender` has sealed for us. Raises RemoteProtocolError."""
        from nacl.exceptions import CryptoError

        if not sealed.startswith(_SEALED):
            raise RemoteProtocolError("the message is not sealed")
        try:
            return bytes(self._box(sender).decrypt(sealed[len(_SEALED) :]))
        except (CryptoError, ValueError):
            raise RemoteProtocolError("the message cannot be decrypted") from None

    def _box(self, other: str) -> Any:
        from nacl.public import Box, PublicKey

        key = decode_nkey(other, NkeyKind.CURVE)
        if key is None:
            raise RemoteProtocolError("the other's key is no curve nkey")
        return Box(self._curve, PublicKey(key))


def _encoded(document: dict[str, Any]) -> str:
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogateescape")
    return base64.urlsafe_b64encode(text).decode("ascii").rstrip("=")
