"""The servers and credentials to connect with: options shared by source and sink, with the same meaning as in the client.

Spark writes options into plans, event logs and checkpoints. So an option never contains a secret, only a reference to one
(`env:NAME` or `file:PATH`), the path of a file (`creds`, `tlsKey`), or the name of a NATS context. All of them are resolved
in the process that connects, and must exist on every machine that runs a worker. As even part of a secret is sensitive, no
message of this module quotes the value of `password`, `token` or `nkey`.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.client_connection.server_url import parse_server_url
from headwater.errors import AuthorizationError, ConfigError, HeadwaterError
from headwater.model.subject import is_literal, is_valid_subject
from headwater.spark.option_values import listed, parsed, truth
from headwater.wire.nkeys import is_seed

if TYPE_CHECKING:
    from headwater.client.options import ClientOptions

DEFAULT_SERVERS: tuple[str, ...] = ("nats://127.0.0.1:4222",)
NAMES = (
    "servers",
    "context",
    "user",
    "password",
    "token",
    "nkey",
    "creds",
    "tls",
    "tlsCa",
    "tlsCert",
    "tlsKey",
    "tlsFirst",
    "tlsHostname",
    "jsApi",
)
API = "$JS.API"
SECRETS = ("password", "token", "nkey")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options as given: `password`, `token` and `nkey` are references, `creds` and the TLS files are paths. `api`: the
    prefix of JetStream's API, such as `$JS.hub.API` for the domain hub, or the subject under which an account imports it;
    empty: the context's."""

    servers: tuple[str, ...] = DEFAULT_SERVERS
    context: str = ""
    user: str = ""
    password: str = ""
    token: str = ""
    nkey: str = ""
    creds: str = ""
    tls: bool = False
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    tls_first: bool = False
    tls_hostname: str = ""
    api: str = ""

    def api_prefix(self) -> str:
        """The prefix of JetStream's API. Raises ConfigError for a context that does not exist."""
        if self.api or not self.context:
            return self.api or API
        from headwater.client.contexts import read_context

        return read_context(self.context, os.environ).api_prefix()

    def client_options(self, name: str, timeout: float) -> "ClientOptions":
        """The client's options, including secrets: not to be displayed. Raises ConfigError for an unresolvable reference."""
        from headwater.client.contexts import find_options
        from headwater.client.options import ConnectArguments

        given = {
            "context": self.context,
            "user": self.user,
            "password": resolve(self.password, "password"),
            "token": resolve(self.token, "token"),
            "nkey_seed": seed_of(self.nkey),
            "creds": self.creds,
            "tls": self.tls,
            "tls_ca": self.tls_ca,
            "tls_cert": self.tls_cert,
            "tls_key": self.tls_key,
            "tls_first": self.tls_first,
            "tls_hostname": self.tls_hostname,
        }
        arguments = ConnectArguments(name=name, connect_timeout=timeout)
        arguments.update({key: value for key, value in given.items() if value})  # type: ignore[typeddict-item]
        return find_options(self.servers or None, arguments)


def parse_server_options(options: Mapping[str, str]) -> ServerOptions:
    """Parse lower-cased options. Raises ConfigError, naming the option."""
    context = options.get("context", "").strip()
    default: tuple[str, ...] = () if context else DEFAULT_SERVERS
    servers = parsed(options, "servers", _servers, default)
    for secret in SECRETS:
        check_reference(options.get(secret, ""), secret)
    if bool(options.get("tlscert")) != bool(options.get("tlskey")):
        raise ConfigError("a client certificate needs both options, tlsCert and tlsKey")
    return ServerOptions(
        servers=servers,
        context=context,
        user=options.get("user", ""),
        password=options.get("password", ""),
        token=options.get("token", ""),
        nkey=options.get("nkey", ""),
        creds=options.get("creds", ""),
        tls=parsed(options, "tls", truth, False),
        tls_ca=options.get("tlsca", ""),
        tls_cert=options.get("tlscert", ""),
        tls_key=options.get("tlskey", ""),
        tls_first=parsed(options, "tlsFirst", truth, False),
        tls_hostname=options.get("tlshostname", ""),
        api=parsed(options, "jsApi", _api, ""),
    )


def resolve(reference: str, name: str) -> str:
    """The secret behind `env:NAME` or `file:PATH`; empty without a reference. Raises ConfigError, without the secret."""
    kind, _, target = reference.partition(":")
    if kind == "env":
        if target not in os.environ:
            raise ConfigError(
                f"option {name}: no environment variable {target!r} in this process",
                value=target,
                hint="Spark's processes have what was set before the session was started; file:PATH needs none of that",
            )
        return os.environ[target]
    if kind == "file":
        try:
            return Path(target).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"option {name}: cannot read {target!r} in this process: {error}", value=target
            ) from error
    return ""


def seed_of(reference: str) -> str:
    """The nkey seed behind a reference, alone or as a line of a file; empty without one. Raises ConfigError, without quoting
    it, for another text: the client would take that for the path of a file, and name it in its error."""
    if not reference:
        return ""
    for line in resolve(reference, "nkey").splitlines():
        if is_seed(line.strip()):
            return line.strip()
    raise ConfigError(f"option nkey: what {reference!r} holds is no nkey seed", hint="58 characters from SU on")


def _servers(text: str) -> tuple[str, ...]:
    urls = listed(text)
    for url in urls:
        address = parse_server_url(url)
        if address.user or address.password or address.token:
            raise ConfigError("a server URL must not hold credentials here", hint="give user, password or token apart")
        if address.is_websocket:
            raise ConfigError(f"{address.url}: WebSocket is not for Spark", value=address.url)
    if not urls:
        raise ConfigError("no server is named", hint="for example nats://127.0.0.1:4222")
    return urls


def _api(text: str) -> str:
    if not is_valid_subject(text.encode()) or not is_literal(text.encode()):
        raise ConfigError(f"{text!r} is no prefix of subjects", value=text, hint="such as $JS.hub.API")
    return text


def check_reference(reference: str, name: str) -> None:
    """Raise ConfigError for a secret in place of a reference to one."""
    kind, _, target = reference.partition(":")
    if reference and (kind not in ("env", "file") or not target):
        raise ConfigError(
            f"option {name} must say where the secret is, not what it is: Spark writes options into checkpoints",
            hint="env:NAME or file:PATH",
        )


def options_for(error: HeadwaterError, by_words: Mapping[str, str]) -> str:
    """The options that a connection may be refused for; the words are OpenSSL's for TLS, and those of our own checks."""
    if isinstance(error, AuthorizationError):
        return "see the options user and password, token, nkey, or creds"
    text = str(error)
    return next((f"see the {names}" for words, names in by_words.items() if words in text), "")
