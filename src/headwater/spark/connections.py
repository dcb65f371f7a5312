"""Connections of this process to NATS servers, kept between tasks (see `headwater.spark_runtime.idle`)."""

import atexit

from headwater.client.blocking import BlockingClient
from headwater.columns.range_answer import RANGE_VERSION, READS_RANGES
from headwater.errors import HeadwaterError
from headwater.spark.server_options import ServerOptions, options_for
from headwater.spark_runtime.idle import IdleConnections

READER = b"NATS/1.0\r\n%b: %d\r\n\r\n" % (READS_RANGES, RANGE_VERSION)  # for STREAM.INFO: we read stored batches
CONNECT_TIMEOUT = 5.0  # seconds per server

OPTIONS_BY_WORDS = {
    "the name does not resolve": "option servers, or context: is the host mistyped?",
    "certificate is not valid for": "option tlsHostname: the name that the server's certificate is for",
    "certificate has expired": "server's certificate: no option mends it",
    "CERTIFICATE_VERIFY_FAILED": "options tlsCa, the authorities to trust, and tlsHostname, the name to expect",
    "CERTIFICATE_REQUIRED": "options tlsCert and tlsKey: the server asks for a certificate",
    "ALERT_UNKNOWN_CA": "option tlsCert: the server does not trust its issuer",
    "ALERT_CERTIFICATE_EXPIRED": "option tlsCert: the certificate has expired",
    "ALERT_BAD_CERTIFICATE": "options tlsCert and tlsKey: the server accepts no other certificate, or not none",
    "ALERT_HANDSHAKE_FAILURE": "options tlsCert and tlsKey: the server may ask for a certificate",
    "X509 certificate/key pair": "options tlsCa, tlsCert and tlsKey",
    "WRONG_VERSION_NUMBER": "option tlsFirst: the server begins without TLS",
    "tls_first": "option tlsFirst: the server may begin with TLS",
    "does not speak TLS": "option tls, and servers: is nats:// meant, or another port?",
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
        error.hint = options_for(error, OPTIONS_BY_WORDS) or error.hint
        raise
    made.api_prefix, made.api_headers = server.api_prefix(), READER
    return made
