"""The connection options of the `nats` tool, which may appear anywhere on the line."""

WITH_VALUE = {
    "-s": "servers",
    "--server": "servers",
    "--user": "user",
    "--password": "password",
    "--token": "token",
    "--creds": "creds",
    "--nkey": "nkey_seed",
    "--tlscert": "tls_cert",
    "--tlskey": "tls_key",
    "--tlsca": "tls_ca",
    "--inbox-prefix": "inbox_prefix",
    "--connection-name": "name",
    "--context": "context",
    "--timeout": "timeout",
    "--js-domain": "domain",
}
WITHOUT_VALUE = {"--tlsfirst": "tls_first", "--json": "json", "-j": "json"}
"""Flags and what they set: fields of `ClientOptions`, the session's `json` and `timeout`, or JetStream's domain."""


def verb_first(words: list[str]) -> list[str]:
    """Move leading connection options after the verb: `-s URL pub x` becomes `pub -s URL x`."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        flag, equals, _ = words[at].partition("=")
        if flag in WITH_VALUE:
            at += 1 if equals else 2
        elif words[at] in WITHOUT_VALUE:
            at += 1
        else:
            return words
    return [*words[at : at + 1], *words[:at], *words[at + 1 :]] if at < len(words) else words
