"""Ed25519 signatures, as nkeys and JWTs use them. The cryptography is PyNaCl's (extra `auth`)."""

import base64
import binascii
from typing import Any

from headwater.errors import EnvironmentProblem

_SIGNATURE_BYTES = 64


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` is that of `message` by the owner of the public `key` (32 bytes)."""
    if len(signature) != _SIGNATURE_BYTES:
        return False
    verify_key, bad_signature = require_nacl()
    try:
        verify_key(key).verify(message, signature)
    except (bad_signature, ValueError):
        return False
    return True


def decode_base64(text: str) -> bytes | None:
    """Base64 in either alphabet, padded or not; None for anything else."""
    plain = text.rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def require_nacl() -> tuple[Any, Any]:
    """The class that verifies and the exception it raises. Raises EnvironmentProblem without PyNaCl."""
    try:
        from nacl.exceptions import BadSignatureError
        from nacl.signing import VerifyKey
    except ImportError as error:
        raise EnvironmentProblem("nkeys and JWTs need PyNaCl", hint="pip install 'headwater[auth]'") from error
    return VerifyKey, BadSignatureError
