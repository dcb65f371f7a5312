"""Makes the tokens of operator mode, as NATS' own tools do: operator, accounts and users, each signed by the one above."""

import base64
import hashlib
import json
from binascii import crc_hqx
from typing import Any

from nacl.signing import SigningKey

from headwater.model.nkey import NkeyKind, encode_nkey

UNLIMITED_ACCOUNT = {
    "subs": -1,
    "data": -1,
    "payload": -1,
    "imports": -1,
    "exports": -1,
    "wildcards": True,
    "conn": -1,
    "leaf": -1,
}
UNLIMITED_USER = {"subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {}}


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Key:
    """A key pair of some kind, made from a number so that tests are the same each time."""

    def __init__(self, kind: NkeyKind, number: int) -> None:
        self.signing = SigningKey(hashlib.sha256(f"{kind}-{number}".encode()).digest())
        self.public = encode_nkey(kind, bytes(self.signing.verify_key))
        body = bytes([18 << 3 | kind >> 5, (kind & 31) << 3]) + bytes(self.signing)
        self.seed = base64.b32encode(body + crc_hqx(body, 0).to_bytes(2, "little")).decode().rstrip("=")

    def sign(self, nonce: str) -> str:
        """The signature of a nonce as CONNECT carries it."""
        return base64url(self.signing.sign(nonce.encode()).signature)


def token(signer: Key, subject: str, nats: dict[str, Any], **claims: Any) -> str:
    """A JWT about `subject`, signed by `signer`."""
    body = {"jti": "X", "iat": 1_700_000_000, "iss": signer.public, "name": "n", "sub": subject, "nats": nats, **claims}
    head = base64url(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
    signed = f"{head}.{base64url(json.dumps(body).encode())}"
    return f"{signed}.{base64url(signer.signing.sign(signed.encode()).signature)}"


class Chain:
    """An operator with the accounts SYS, A and B. `users` are made by `user`."""

    def __init__(self, **account_a: Any) -> None:
        self.operator = Key(NkeyKind.OPERATOR, 1)
        self.system, self.a, self.b = (Key(NkeyKind.ACCOUNT, number) for number in (1, 2, 3))
        self.signer = Key(NkeyKind.ACCOUNT, 4)  # a signing key of A
        self.scoped = Key(NkeyKind.ACCOUNT, 5)  # one with a scope
        self.operator_jwt = token(
            self.operator,
            self.operator.public,
            {"type": "operator", "version": 2, "system_account": self.system.public},
        )
        self.accounts = {
            self.system.public: self.account(self.system),
            self.a.public: self.account(self.a, **account_a),
            self.b.public: self.account(self.b),
        }

    def account(self, key: Key, *, signed_by: Key | None = None, expires: int = 0, **more: Any) -> str:
        limits = {**UNLIMITED_ACCOUNT, **more.pop("limits", {})}
        nats = {
            "type": "account",
            "version": 2,
            "limits": limits,
            "default_permissions": {"pub": {}, "sub": {}},
            **more,
        }
        claims = {"exp": expires} if expires else {}
        return token(signed_by or self.operator, key.public, nats, **claims)

    def user(self, key: Key, signed_by: Key, *, claims: dict[str, Any] | None = None, **more: Any) -> str:
        """A user's JWT; `more` goes into its limits and permissions."""
        nats = {"type": "user", "version": 2, **UNLIMITED_USER, **more}
        return token(signed_by, key.public, nats, **(claims or {}))

    def creds(self, key: Key) -> str:
        """The text of a .creds file of a user of the account A."""
        jwt = self.user(key, self.a)
        return (
            f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{key.seed}\n------END USER NKEY SEED------\n"
        )

    def config(self) -> str:
        """The configuration of a server that trusts this operator."""
        preload = "\n".join(f"  {key}: {jwt}" for key, jwt in self.accounts.items())
        return f"operator: {self.operator_jwt}\nresolver: MEMORY\nresolver_preload: {{\n{preload}\n}}\n"
