"""Servers and credentials from NATS contexts and the environment, for programs that do not set them.

A context is a file of the `nats` tool, which our own `headwater context` writes as well:
`~/.config/nats/context/<name>.json`, the chosen one named in `~/.config/nats/context.txt` (XDG_CONFIG_HOME in place of
~/.config, where set). In order, the first that says something about a field counts:

    arguments  >  the context named as an argument  >  NATS_URL, NATS_USER, … >  the context that NATS_CONTEXT names
               >  for the command line only: the chosen context  >  nats://127.0.0.1:4222

The library does not read the chosen context by itself: it would connect a program to production because that context
was once selected in a shell.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec

from headwater.client.nats_py_names import translate
from headwater.client_connection.options import DEFAULT_URL, ClientOptions, ConnectArguments
from headwater.errors import ConfigError
from headwater.model.record import meant

_FROM_ENVIRONMENT = {
    "NATS_USER": "user",
    "NATS_PASSWORD": "password",
    "NATS_TOKEN": "token",
    "NATS_CREDS": "creds",
    "NATS_NKEY": "nkey_seed",
    "NATS_CA": "tls_ca",
    "NATS_CERT": "tls_cert",
    "NATS_KEY": "tls_key",
}
_FORBIDDEN = frozenset("/\\ \t\r\n")


class NatsContext(msgspec.Struct, kw_only=True):
    """The fields of a context file that a client uses. Unknown fields are ignored."""

    description: str = ""
    url: str = ""
    token: str = ""
    user: str = ""
    password: str = ""
    creds: str = ""
    nkey: str = ""
    cert: str = ""
    key: str = ""
    ca: str = ""
    inbox_prefix: str = ""
    jetstream_domain: str = ""
    jetstream_api_prefix: str = ""
    tls_first: bool = False

    def arguments(self) -> dict[str, object]:
        """The fields that it sets, by the names of `ClientOptions`; `servers` is the text of its URLs."""
        found: dict[str, object] = {
            "servers": self.url,
            "token": self.token,
            "user": self.user,
            "password": self.password,
            "creds": _home(self.creds),
            "nkey_seed": _home(self.nkey),
            "tls_cert": _home(self.cert),
            "tls_key": _home(self.key),
            "tls_ca": _home(self.ca),
            "inbox_prefix": self.inbox_prefix,
            "tls_first": self.tls_first,
        }
        return {name: value for name, value in found.items() if value}

    def api_prefix(self) -> str:
        """The prefix of JetStream's API: as it says, that of its domain, or the usual one."""
        in_domain = f"$JS.{self.jetstream_domain}.API" if self.jetstream_domain else "$JS.API"
        return self.jetstream_api_prefix or in_domain


def contexts_directory(environment: Mapping[str, str]) -> Path:
    """The directory of the `nats` tool's contexts."""
    base = environment.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base else Path("~/.config").expanduser()) / "nats"


def context_path(name: str, environment: Mapping[str, str]) -> Path:
    """The path of a context's file, which need not exist. Raises ConfigError for an invalid name."""
    if not name or not _FORBIDDEN.isdisjoint(name) or name.startswith("."):
        hint = "no / or \\ or blank in it, and no dot at its beginning"
        raise ConfigError(f"{name!r} is no name of a context", value=name, hint=hint)
    return contexts_directory(environment) / "context" / f"{name}.json"


def context_names(environment: Mapping[str, str]) -> list[str]:
    """The names of all contexts."""
    return sorted(path.stem for path in (contexts_directory(environment) / "context").glob("*.json"))


def write_context(name: str, document: Mapping[str, object], environment: Mapping[str, str]) -> None:
    """Write a context's file as a whole, for its owner only: it may hold secrets. Raises ConfigError."""
    path = context_path(name, environment)
    _replace(path, msgspec.json.format(msgspec.json.encode(dict(document)), indent=2) + b"\n")


def choose_context(name: str, environment: Mapping[str, str]) -> None:
    """Make `name` the chosen context; "" for none. Raises ConfigError."""
    path = contexts_directory(environment) / "context.txt"
    if name:
        _replace(path, name.encode())
    else:
        path.unlink(missing_ok=True)


def _replace(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        part.replace(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", value=str(path)) from None


def read_context(name: str, environment: Mapping[str, str]) -> NatsContext:
    """Read a context. Raises ConfigError when it is missing or invalid; the error quotes no secret."""
    path = context_path(name, environment)
    try:
        return msgspec.json.decode(path.read_bytes(), type=NatsContext)
    except OSError:
        known = sorted(each.stem for each in path.parent.glob("*.json"))
        hint = f"there are: {', '.join(known)}" if known else f"there are none in {path.parent}"
        raise ConfigError(f"there is no NATS context {name!r}", value=name, hint=hint) from None
    except msgspec.MsgspecError as error:
        kind = type(error).__name__  # its text may quote the document
        raise ConfigError(f"the NATS context {path} cannot be read: {kind}", value=str(path)) from None


def chosen_context(environment: Mapping[str, str]) -> str:
    """The name of the context that the `nats` tool has chosen, or ""."""
    try:
        return (contexts_directory(environment) / "context.txt").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def find_options(
    servers: str | Sequence[str] | None,
    arguments: ConnectArguments | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    use_chosen: bool = False,
) -> ClientOptions:
    """The options of a client from all places, in the order above. Raises ConfigError."""
    env = os.environ if environment is None else environment
    given: dict[str, object] = translate({**(arguments or {})})
    if servers:
        given["servers"] = servers
    unknown = given.keys() - ClientOptions.names()
    if unknown:
        name = sorted(unknown)[0]
        raise TypeError(f"connect() got an unexpected argument {name!r}{meant(name, ClientOptions.names())}")
    layers = [given]
    if name := str(given.get("context") or ""):
        layers.append(read_context(name, env).arguments())
    elif "servers" not in given:
        # A program that names its server must not get a context's credentials for another one.
        layers.append(_environment(env))
        if name := env.get("NATS_CONTEXT", "") or (chosen_context(env) if use_chosen else ""):
            layers.append(read_context(name, env).arguments())
    found: dict[str, object] = {"servers": DEFAULT_URL}
    for layer in reversed(layers):
        found.update(layer)
    if isinstance(found["servers"], str):
        found["servers"] = tuple(url for url in found["servers"].split(",") if url.strip())
    else:
        found["servers"] = tuple(cast(Sequence[str], found["servers"]))
    return ClientOptions(**found)  # type: ignore[arg-type]


def _environment(env: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {name: _home(env[key]) for key, name in _FROM_ENVIRONMENT.items() if env.get(key)}
    if env.get("NATS_URL"):
        found["servers"] = env["NATS_URL"]
    return found


def _home(path: str) -> str:
    return str(Path(path).expanduser()) if path.startswith("~") else path
