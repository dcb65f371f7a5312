"""The client's credentials: the fields of CONNECT, built for each connection.

    user and password, or token      as they are; those in a server's URL win
    nkey seed                        CONNECT carries the public key and a signature of the server's nonce
    .creds file                      a JWT and the seed that belongs to it; the JWT and the signature go out, the seed never

Files are read at each connection, so that a renewed one is used from the next reconnect on. No error and no `repr`
quotes a secret.
"""

import base64
import json
import re
from os import PathLike
from pathlib import Path

from headwater.client_connection.server_url import ServerAddress
from headwater.errors import ConfigError
from headwater.model.record import Record
from headwater.wire.handshake import ConnectOptions
from headwater.wire.nkeys import KeyPair, creds_in, is_seed


class Credentials(Record, secret=("password", "token", "nkey_seed")):
    """At most one kind is used: `creds`, else `nkey_seed`, else what the URL carries, else the token, else user."""

    user: str = ""
    password: str = ""
    token: str = ""
    nkey_seed: str | PathLike[str] = ""  # the text itself, or the path of a file
    creds: str | PathLike[str] = ""  # the path of a .creds file

    def fill(self, options: ConnectOptions, address: ServerAddress, nonce: str) -> ConnectOptions:
        """The CONNECT options for `address`, whose INFO had `nonce` ("" for none).

        Raises ConfigError for files that cannot be read or hold something else, EnvironmentProblem without PyNaCl.
        """
        if self.creds:
            jwt, seed = read_creds(Path(self.creds))
            key = KeyPair(seed)
            return options.replace(jwt=jwt, nkey=None, sig=key.sign(nonce))
        if self.nkey_seed:
            key = KeyPair(_read_seed(self.nkey_seed))
            # A server without nkeys sends no nonce, and has no use for our public key.
            return options.replace(nkey=key.public_key, sig=key.sign(nonce)) if nonce else options
        if address.token or address.user:
            user, password, token = address.user, address.password, address.token
        else:
            user, password, token = self.user, self.password, self.token
        return options.replace(user=user or None, password=password or None, auth_token=token or None)


def identity_of(options: ConnectOptions) -> str:
    """The identity in this CONNECT for error texts: without secrets, and for a JWT its unverified claims."""
    if options.jwt:
        try:
            body = options.jwt.split(".")[1]
            claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
            account = claims["nats"].get("issuer_account") or claims["iss"]
            return f"the user {claims['name']!r} of the account {account}"
        except (ValueError, LookupError, TypeError, AttributeError):
            return "the user of a JWT"
    if options.nkey:
        return f"the user of the nkey {options.nkey}"
    if options.auth_token or (options.user and not options.password):  # a user alone may be a token
        return "the user of a token"
    return f"the user {options.user!r}" if options.user else "a user without a name"


def _read_seed(given: str | PathLike[str]) -> str:
    text = str(given).strip()
    if isinstance(given, str) and is_seed(text):
        return text
    for line in _read(Path(given), "nkey seed").splitlines():
        if line.strip().startswith("S"):
            return line.strip()
    raise ConfigError(f"the file {text} holds no nkey seed", value=text, hint="a line of it begins with SU")


def read_creds(path: Path) -> tuple[str, str]:
    """The JWT and the seed of a .creds file. Raises ConfigError, without quoting either."""
    jwt, seed = creds_in(_read(path, ".creds file"))
    if not jwt or not seed:
        missing = "JWT" if not jwt else "nkey seed"
        raise ConfigError(f"{path} holds no user {missing}", value=str(path), hint="make it with `nsc generate creds`")
    return jwt, seed


def _read(path: Path, what: str) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        shown = _shown(path)
        raise ConfigError(f"the {what} {shown} cannot be read: {reason}", value=shown, hint="give a path") from None


def _shown(path: Path) -> str:
    """The path for error texts. Who gives the secret itself in place of a path, mistyped or with its whole file, does not
    find it in a log: seeds and JWTs have such runs of letters and digits, names of files seldom."""
    text = str(path)
    return "(not shown: it may be a secret)" if re.search("[A-Za-z0-9]{20}", text) else text
