"""NATS keys: an Ed25519 seed as text, and the signature that proves its possession.

    S U <56 letters>        base32 of: prefix (2 bytes: "seed" and kind), 32 seed bytes, CRC-16/XMODEM of all before (LE)
    U <55 letters>          base32 of: prefix (1 byte), 32 bytes of public key, CRC-16 (LE)

    .creds file             a JWT and a seed, each between a line with BEGIN and one with END

The cryptography is PyNaCl's (extra `auth`); this module only reads and writes the texts. No error quotes a seed.
"""

import base64
import binascii
import re
from typing import Any

from headwater.errors import ConfigError, EnvironmentProblem
from headwater.model.nkey import NkeyKind, encode_nkey

_SEED_PREFIX = 18 << 3
_SECTION = re.compile(r"-{3,}BEGIN ([A-Z ]+?)-{3,}\s*(\S+)\s*-{3,}END \1-{3,}", re.DOTALL)
_KINDS: dict[int, str] = {
    NkeyKind.ACCOUNT: "an account",
    NkeyKind.CLUSTER: "a cluster",
    NkeyKind.SERVER: "a server",
    NkeyKind.OPERATOR: "an operator",
}
_SEED = re.compile(r"S[A-Z2-7]{50,60}")  # 58 characters, and those that a slip has left out or doubled
_SEED_BYTES = 2 + 32 + 2


def _decode(text: str) -> bytes:
    padded = text + "=" * (-len(text) % 8)
    try:
        raw = base64.b32decode(padded.encode("ascii"))
    except (ValueError, UnicodeEncodeError):
        raise ConfigError("the nkey seed is no base32 text", hint="a user's seed begins with SU") from None
    if len(raw) < 3 or binascii.crc_hqx(raw[:-2], 0) != int.from_bytes(raw[-2:], "little"):
        raise ConfigError("the checksum of the nkey seed is wrong: it was cut or mistyped")
    return raw[:-2]


def is_seed(text: str) -> bool:
    """Whether a text has the form of a seed, of any kind: not a path, and not to be quoted."""
    return _SEED.fullmatch(text) is not None


def creds_in(text: str) -> tuple[str, str]:
    """The JWT and the seed in the text of a .creds file; a missing one is ""."""
    sections = dict(_SECTION.findall(text))
    return sections.get("NATS USER JWT", ""), sections.get("USER NKEY SEED", "")


class KeyPair:
    """A user's key pair, decoded from its seed text. Neither `repr` nor errors contain the seed."""

    __slots__ = ("_signer", "public_key")

    def __init__(self, seed: str) -> None:
        """Raises ConfigError if `seed` is not a user's seed, EnvironmentProblem if PyNaCl is missing."""
        try:
            from nacl.signing import SigningKey
        except ImportError as error:
            raise EnvironmentProblem(
                "nkeys and .creds files need PyNaCl", hint="pip install 'headwater[auth]'"
            ) from error
        raw = _decode(seed.strip())
        if len(raw) != _SEED_BYTES - 2 or raw[0] & 0xF8 != _SEED_PREFIX:
            raise ConfigError("this is no nkey seed", hint="a user's seed begins with SU")
        kind = ((raw[0] & 7) << 5) | (raw[1] >> 3)
        if kind != NkeyKind.USER:
            kind_name = _KINDS.get(kind, "something else")
            raise ConfigError(
                f"the nkey seed is that of {kind_name}, not of a user", hint="a user's seed begins with SU"
            )
        self._signer: Any = SigningKey(raw[2:])
        self.public_key = encode_nkey(NkeyKind.USER, bytes(self._signer.verify_key))

    def sign(self, nonce: str) -> str:
        """The signature of a server's nonce, base64url without padding, for CONNECT."""
        signed = self._signer.sign(nonce.encode("utf-8")).signature
        return base64.urlsafe_b64encode(signed).decode().rstrip("=")

    def __repr__(self) -> str:
        return f"<KeyPair {self.public_key}>"
