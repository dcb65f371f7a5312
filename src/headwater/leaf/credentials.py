"""Our credentials for a hub: fills in CONNECT for each connection. No error quotes a secret.

    credentials   a .creds file: the JWT, and the hub's nonce signed with the file's seed
    nkey          a seed: the public key, and the nonce signed with it
    the URL       user and password; a user without a password is also sent as a token, as nats-server does

The file is read for each connection, so a renewed file takes effect at the next one.
"""

from pathlib import Path

from headwater.errors import ConfigError
from headwater.leaf.remote import Address
from headwater.options.leaf import RemoteOptions
from headwater.wire.leaf_lines import LeafConnect
from headwater.wire.nkeys import KeyPair, creds_in


def prove(connect: LeafConnect, options: RemoteOptions, address: Address, nonce: str) -> None:
    """Put credentials into `connect`. Raises ConfigError for unusable files and seeds, EnvironmentProblem without
    PyNaCl.
    """
    if options.credentials:
        jwt, seed = _read(Path(options.credentials))
        connect.jwt, connect.sig = jwt, KeyPair(seed).sign(nonce)
    elif options.nkey:
        key = KeyPair(options.nkey)
        connect.nkey, connect.sig = key.public_key, key.sign(nonce)
    elif address.user:
        connect.user = address.user
        connect.password = address.password or ""
        if address.password is None:
            connect.auth_token = address.user


def check(options: RemoteOptions) -> None:
    """Raise what `prove` would raise, before the broker starts."""
    if options.credentials:
        KeyPair(_read(Path(options.credentials))[1])
    elif options.nkey:
        KeyPair(options.nkey)


def _read(path: Path) -> tuple[str, str]:
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is no text"
        raise ConfigError(f"the .creds file {path} cannot be read: {reason}", value=str(path)) from None
    jwt, seed = creds_in(text)
    if not jwt or not seed:
        missing = "JWT" if not jwt else "nkey seed"
        raise ConfigError(f"{path} holds no user {missing}", value=str(path), hint="make it with `nsc generate creds`")
    return jwt, seed
