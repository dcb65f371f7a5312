"""Connections of this process to NATS servers, kept between tasks (see `headwater.spark_runtime.idle`)."""

import atexit

from headwater.client.blocking import BlockingClient
from headwater.columns.range_answer import RANGE_VERSION, READS_RANGES
from headwater.spark.server_options import ServerOptions
from headwater.spark_runtime.idle import IdleConnections

READER = b"NATS/1.0\r\n%b: %d\r\n\r\n" % (READS_RANGES, RANGE_VERSION)  # for STREAM.INFO: we read stored batches
CONNECT_TIMEOUT = 5.0  # seconds per server

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
    made = BlockingClient.connect(server.client_options("headwater-spark", min(CONNECT_TIMEOUT, patience)))
    made.api_prefix, made.api_headers = server.api_prefix(), READER
    return made
