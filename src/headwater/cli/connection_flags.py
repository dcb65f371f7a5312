"""The connection options of the `nats` tool, which stand anywhere on the line: before the verb, between, behind."""

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
"""Flags and the names of what they set; those of `ClientOptions`, the session's `json` and `timeout`, JetStream's domain."""


def verb_first(words: list[str]) -> list[str]:
    """The words with leading connection options moved behind the verb: `-s URL pub x` is `pub -s URL x`."""
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
