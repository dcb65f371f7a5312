"""The block about leaf nodes: `leafnodes`, with `authorization` for spokes and `remotes`, the hubs that are dialled.

`compression` other than off is refused: the connection would work uncompressed, which its operator would not expect.
"""

import re
from pathlib import Path
from typing import Any

from headwater.errors import ConfigError
from headwater.model.nkey import NkeyKind
from headwater.model.subject import is_valid_subject
from headwater.options.access import GLOBAL_ACCOUNT, UserOptions
from headwater.options.leaf import LeafOptions, LeafUser, RemoteOptions, RemoteTlsOptions
from headwater.server.config import fields
from headwater.server.config.document import Setting, kind
from headwater.server.config.fields import Block, Reading, done, ignored, refused
from headwater.server.config.transport import read_tls, spread_address

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:[-+].*)?")
_OLDEST = (2, 8, 0)
_OFF = (False, "off", "disabled", "disable", "not_supported")


def _compression(reading: Reading, setting: Setting) -> None:
    mode = setting.value
    if isinstance(mode, dict):
        found = mode.get("mode")
        mode = found.value if found is not None else ""
    word = mode.lower() if isinstance(mode, str) else mode
    if word not in _OFF:
        raise ValueError("can only be off: connections to leaf nodes are not compressed (S2)")


def _version(reading: Reading, setting: Setting) -> str:
    version = fields.text(reading, setting)
    found = _VERSION.fullmatch(version)
    if found is None:
        raise ValueError("invalid leafnode's minimum version: invalid semver")
    if tuple(map(int, found.groups())) < _OLDEST:
        raise ValueError("the minimum version should be at least 2.8.0")
    return version


def _subjects(reading: Reading, setting: Setting) -> tuple[str, ...]:
    subjects = fields.texts(reading, setting)
    for subject in subjects:
        if not is_valid_subject(subject.encode()):
            raise ValueError(f'subject "{subject}" is not a valid subject')
    return subjects


# ── credentials of spokes ──

LEAF_USER = Block(
    "leafnodes.authorization.users",
    (
        done("user username", fields.text, "the name", to="username"),
        done("pass password", fields.text, "plain or bcrypt", to="password"),
        done("account", fields.text, "of ours, that the spoke is joined to; $G by default"),
    ),
)


def _user(reading: Reading, setting: Setting) -> LeafUser:
    found = reading.block(setting, LEAF_USER)
    if not found.get("username"):
        raise ValueError("a user of leafnodes needs a user")
    account = found.pop("account", GLOBAL_ACCOUNT)
    return LeafUser(user=UserOptions(**found), account=account)


LEAF_AUTHORIZATION = Block(
    "leafnodes.authorization",
    (
        done("user username", fields.text, "that spokes show", to="username"),
        done("pass password", fields.text, "plain or bcrypt", to="password"),
        done("nkey", fields.nkey(NkeyKind.USER, "nkey for a user"), "public key, instead of a name and a password"),
        done("account", fields.text, "of ours, that this user's spokes join; without a user: if nobody has to log in"),
        done("users", lambda reading, setting: reading.elements(setting, _user), "a list, instead of one user"),
        done("timeout", fields.amount_of_seconds, "for a spoke to show it; 2 seconds", to="auth_timeout"),
        refused("proxy_required", "there is no proxy protocol"),
    ),
)


def _authorization(reading: Reading, setting: Setting) -> dict[str, Any]:
    """Keywords of LeafOptions."""
    found = reading.block(setting, LEAF_AUTHORIZATION)
    keywords = {"auth_timeout": found["auth_timeout"]} if found.get("auth_timeout") else {}
    users = list(found.get("users", ()))
    if found.get("username") or found.get("nkey"):
        if users:
            raise ValueError("can not have a single user/pass and a users array")
        if found.get("username") and found.get("nkey"):
            raise ValueError("can not have a user and an nkey")
        one = {name: found[name] for name in ("username", "password", "nkey") if name in found}
        users.append(LeafUser(user=UserOptions(**one), account=found.get("account", GLOBAL_ACCOUNT)))
    elif "account" in found:
        keywords["account"] = found["account"]
    return {**keywords, "users": tuple(users)}


# ── remotes ──


def _handshake_first(reading: Reading, setting: Setting) -> bool:
    """A dialler either starts with TLS or waits for INFO: any duration, which is meant for listeners, selects the first."""
    if isinstance(setting.value, bool):
        return setting.value
    word = fields.text(reading, setting).lower()
    if word in ("false", "off"):
        return False
    if word not in ("true", "on", "auto", "auto_fallback"):
        fields.time_text(reading, setting)
    return True


REMOTE_TLS = Block(
    "leafnodes.remotes.tls",
    (
        done("ca_file", lambda reading, setting: Path(reading.file(setting)), "whose certificates are taken"),
        done("cert_file", lambda reading, setting: Path(reading.file(setting)), "our certificate, PEM"),
        done("key_file", lambda reading, setting: Path(reading.file(setting)), "its private key, PEM"),
        done("insecure", fields.switch, "the hub's certificate is not checked"),
        done("handshake_first first immediate", _handshake_first, "TLS before the hub's INFO"),
        done("timeout", fields.amount_of_seconds, "for the handshake; 2 seconds"),
        ignored("verify", "the hub's certificate is always checked, but for insecure"),
        ignored("curve_preferences", "OpenSSL chooses the curve"),
        refused("cipher_suites min_version", "OpenSSL chooses, of TLS 1.2 and newer"),
        refused("pinned_certs", "certificates of hubs are not pinned"),
        refused("verify_and_map verify_cert_and_check_known_urls", "it is for listeners"),
        refused("ocsp_peer", "certificates are not checked by OCSP"),
        refused("certs certificates", "one certificate a remote"),
        refused("cert_store cert_match_by cert_match ca_certs_match cert_match_skip_invalid", "Windows only"),
    ),
)


def _remote_tls(reading: Reading, setting: Setting) -> RemoteTlsOptions:
    return RemoteTlsOptions(**reading.block(setting, REMOTE_TLS))


def _seed(reading: Reading, setting: Setting) -> str:
    from headwater.wire.nkeys import KeyPair

    seed = fields.text(reading, setting)
    try:
        KeyPair(seed)
    except ConfigError:
        raise ValueError("is not a valid seed") from None  # not quoted: it may be a secret
    return seed


REMOTE = Block(
    "leafnodes.remotes",
    (
        done("url", fields.texts, "of the hub: tls://host:7422; ws:// and wss:// too", to="urls"),
        done("urls", fields.texts, "several of one hub"),
        done("account local", fields.text, "of ours; $G by default"),
        done("credentials creds", fields.text, "a .creds file"),
        done("nkey seed", _seed, "the seed of a user"),
        done("tls", _remote_tls, "a tls block"),
        done("hub", fields.switch, "the other side is the spoke, though we dial"),
        done("deny_imports deny_import", _subjects, "subjects that we do not take from there"),
        done("deny_exports deny_export", _subjects, "subjects that we do not send there"),
        done("no_randomize dont_randomize", fields.switch, "the urls are tried in their order"),
        done(
            "isolate_leafnode_interest isolate",
            fields.switch,
            "not given the interest of other leaf nodes",
            to="isolate",
        ),
        done("request_isolation", fields.switch, "we ask for no interest of its other leaf nodes"),
        done("ignore_discovered_servers", fields.switch, "only the urls written here are dialled"),
        done("first_info_timeout", fields.seconds, 'until the hub has said INFO; "1s"'),
        done("dial_timeout", fields.seconds, 'for a connection; "1s"'),
        done("compression", _compression, "off, as it is anyway", to=""),
        done("disabled", fields.switch, "it is not dialled"),
        ignored("ws_no_masking", "frames are always masked"),
        ignored("jetstream_cluster_migrate", "streams live on one broker"),
        refused("ws_compression ws_compress", "connections to leaf nodes are not compressed"),
        refused("proxy", "hubs are dialled directly"),
    ),
)


def _remote(reading: Reading, setting: Setting) -> RemoteOptions | None:
    """The options of one remote; None for a disabled one."""
    if not isinstance(setting.value, dict):
        raise ValueError(f"a remote must be a block, not {kind(setting.value)}")
    wrong = len(reading.errors)
    found = reading.settings(setting.value, REMOTE)
    found.pop("compression", None)
    disabled = found.pop("disabled", False)
    if len(reading.errors) > wrong:
        return None
    try:
        remote = RemoteOptions(**{"urls": (), **found})
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return None if disabled else remote


LEAFNODES = Block(
    "leafnodes",
    (
        done("listen", fields.address, "host:port for spokes"),
        done("host net", fields.text, "for spokes"),
        done("port", fields.port, "for spokes; without one nothing listens, -1 for any free one"),
        done("advertise", fields.text, "host:port that is announced to spokes"),
        done("no_advertise", fields.switch, "no address is announced to spokes"),
        done("authorization", _authorization, "what spokes must show, instead of what clients must"),
        done("tls", read_tls, "a tls block"),
        done("min_version", _version, "of spokes; at least 2.8.0"),
        done("reconnect_interval reconnect reconnect_delay", fields.seconds, 'between two dials; "1s"', to="reconnect"),
        done(
            "isolate_leafnode_interest isolate",
            fields.switch,
            "spokes do not get the interest of others",
            to="isolate",
        ),
        done("write_deadline", fields.seconds, "a spoke that takes nothing for so long is closed"),
        done("compression", _compression, "off, as it is anyway", to=""),
        done(
            "remotes", lambda reading, setting: tuple(filter(None, reading.elements(setting, _remote))), "hubs to dial"
        ),
        ignored("dial_timeout", "each remote has its own"),
        ignored("write_timeout", "a spoke that takes nothing within write_deadline is closed"),
    ),
)


def read_leafnodes(reading: Reading, setting: Setting) -> LeafOptions | None:
    """A `leafnodes` block; None when it has neither a port nor a remote, and so no effect."""
    keywords = spread_address(reading.block(setting, LEAFNODES))
    keywords |= keywords.pop("authorization", {})
    keywords.pop("compression", None)
    if "reconnect" in keywords:
        keywords["reconnect_interval"] = keywords.pop("reconnect")
    if not keywords.get("port"):
        keywords.pop("port", None)
        if not keywords.get("remotes"):
            reading.warn(setting.place, '"leafnodes" has neither a port nor remotes, so nothing is joined')
            return None
    else:
        keywords["port"] = max(0, keywords["port"])
    return LeafOptions(**keywords)
