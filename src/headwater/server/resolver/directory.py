"""A directory of account JWTs: `<public key>.jwt` each, as nats-server's resolvers of type full and cache keep them.

A file is written beside the old one, made durable and renamed, so a crash leaves one of the two. A deleted account's
file is renamed to `.jwt.deleted`, or removed if so configured. Two directories compare their `digest`, the exclusive or
of the SHA-256 of all JWTs.

The workers of a server share one: all get what is pushed, and write and delete the same files at the same moment.
"""

import hashlib
import logging
import os
from contextlib import suppress
from pathlib import Path

from headwater.errors import ConfigError, EnvironmentProblem
from headwater.model.nkey import NkeyKind, decode_nkey

logger = logging.getLogger(__name__)

_ENDING = ".jwt"


class AccountDirectory:
    """`limit`: how many accounts may be kept, 0 for no limit. Raises ConfigError for a directory that
    cannot be used."""

    def __init__(self, path: Path, *, limit: int = 0, hard_delete: bool = False) -> None:
        self._path = path
        self._limit = limit
        self._hard_delete = hard_delete
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
                raise PermissionError(13, "it cannot be written")
        except OSError as error:
            raise ConfigError(
                f"the resolver's directory {str(path)!r} cannot be used: {error.strerror}", value=str(path)
            ) from error
        self._tokens = {key: token for key in self._keys() if (token := self._read(key))}

    @property
    def tokens(self) -> dict[str, str]:
        """All JWTs, by the accounts' public keys."""
        return dict(sorted(self._tokens.items()))

    def get(self, key: str) -> str:
        """The JWT of an account; empty without one."""
        return self._tokens.get(key, "")

    def digest(self) -> bytes:
        """32 bytes that are equal for equal contents."""
        mixed = 0
        for token in self._tokens.values():
            mixed ^= int.from_bytes(hashlib.sha256(token.encode("ascii")).digest(), "big")
        return mixed.to_bytes(32, "big")

    def save(self, key: str, token: str, *, synced: bool = True) -> bool:
        """Store a JWT; False when it is stored already. Raises EnvironmentProblem when it cannot be written.

        `synced`: durable on return. JWTs from other servers need no sync: a thousand of them would block the broker for
        seconds, and after a power loss they are fetched again."""
        if self._tokens.get(key) == token:
            return False
        if self._limit and key not in self._tokens and len(self._tokens) >= self._limit:
            raise EnvironmentProblem("the resolver's limit of accounts is reached", value=self._limit)
        path = self._path_of(key)
        fresh = path.with_suffix(f".{os.urandom(4).hex()}.writing")
        try:
            with fresh.open("w", encoding="ascii") as file:
                file.write(token)
                file.flush()
                if synced:
                    os.fsync(file.fileno())
            fresh.replace(path)
            if synced:
                self._make_durable()
        except OSError as error:
            raise EnvironmentProblem(f"the JWT of {key} cannot be written: {error.strerror}", value=key) from error
        self._tokens[key] = token
        return True

    def delete(self, key: str) -> bool:
        """Remove an account; False when there is none. Raises EnvironmentProblem."""
        if key not in self._tokens:
            return False
        path = self._path_of(key)
        try:
            if self._hard_delete:
                path.unlink(missing_ok=True)
            else:
                with suppress(FileNotFoundError):  # another worker was first
                    path.replace(path.with_name(path.name + ".deleted"))
            self._make_durable()
        except OSError as error:
            raise EnvironmentProblem(f"the JWT of {key} cannot be deleted: {error.strerror}", value=key) from error
        del self._tokens[key]
        return True

    def _keys(self) -> list[str]:
        names = [path.name.removesuffix(_ENDING) for path in self._path.glob(f"*{_ENDING}")]
        return sorted(name for name in names if decode_nkey(name, NkeyKind.ACCOUNT) is not None)

    def _read(self, key: str) -> str:
        try:
            return self._path_of(key).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:  # the account is missing here until it is pushed again
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            logger.error("account_jwt_unreadable account=%s reason=%s", key, reason)
            return ""

    def _path_of(self, key: str) -> Path:
        if decode_nkey(key, NkeyKind.ACCOUNT) is None:
            raise EnvironmentProblem("this is no public key of an account", value=key)
        return self._path / f"{key}{_ENDING}"

    def _make_durable(self) -> None:
        handle = os.open(self._path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
