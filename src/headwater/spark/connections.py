"""Connections of this process to NATS servers, kept between tasks (see `headwater.spark_runtime.idle`)."""

import atexit

from headwater.client.blocking import BlockingClient
from headwater.columns.range_answer import RANGE_VERSION, READS_RANGES
from headwater.errors import AuthorizationError, HeadwaterError
from headwater.spark.server_options import ServerOptions
from headwater.spark_runtime.idle import IdleConnections

READER = b"NATS/1.0\r\n%b: %d\r\n\r\n" % (READS_RANGES, RANGE_VERSION)  # for STREAM.INFO: we read stored batches
CONNECT_TIMEOUT = 5.0  # seconds per server

OPTIONS_BY_WORDS = {
    "CERTIFICATE_VERIFY_FAILED": "options tlsCa, the authorities to trust, and tlsHostname, the name to expect",
    "CERTIFICATE_REQUIRED": "options tlsCert and tlsKey: the server asks for a certificate",
    "ALERT_UNKNOWN_CA": "option tlsCert: the server does not trust its issuer",
    "X509 certificate/key pair": "options tlsCa, tlsCert and tlsKey",
    "WRONG_VERSION_NUMBER": "option tlsFirst: the server begins without TLS",
    ".creds": "option creds",
}

_idle: IdleConnections[ServerOptions, BlockingClient] = IdleConnections()
give_back = _idle.give_back
close_idle = atexit.register(_idle.close)


def take(server: ServerOptions, patience: float, *, fresh: bool = False) -> BlockingClient:
    """A connected client: an idle one, or with `fresh`, or if none is idle, a new one. `patience`: the longest that the
    caller waits, in seconds; connecting takes at most `CONNECT_TIMEOUT` of them per server. Raises what `connect` raises.
    """
    kept = _idle.take(server, fresh=fresh)
    if kept is not None:
        return kept
    try:
        made = BlockingClient.connect(server.client_options("headwater-spark", min(CONNECT_TIMEOUT, patience)))
    except HeadwaterError as error:
        error.hint = _options_for(error) or error.hint
        raise
    made.api_prefix, made.api_headers = server.api_prefix(), READER
    return made


def _options_for(error: HeadwaterError) -> str:
    """The options that a connection may be refused for; the words are OpenSSL's for TLS, and those of our own checks."""
    if isinstance(error, AuthorizationError):
        return "see the options user and password, token, nkey, or creds"
    text = str(error)
    return next((f"see the {names}" for words, names in OPTIONS_BY_WORDS.items() if words in text), "")
