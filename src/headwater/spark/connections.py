"""Connections of this process to NATS servers, kept between tasks (as `headwater.spark.idle` describes)."""

import atexit

from headwater.client.blocking import BlockingClient
from headwater.spark.idle import IdleConnections
from headwater.spark.server_options import ServerOptions
from headwater.streams.range_answer import RANGE_VERSION, READS_RANGES

READER = b"NATS/1.0\r\n%b: %d\r\n\r\n" % (READS_RANGES, RANGE_VERSION)  # of STREAM.INFO: stored batches are read here
CONNECT_TIMEOUT = 5.0  # seconds per server

_idle: IdleConnections[ServerOptions, BlockingClient] = IdleConnections()
give_back = _idle.give_back
close_idle = atexit.register(_idle.close)


def take(server: ServerOptions, patience: float, *, fresh: bool = False) -> BlockingClient:
    """A connected client: an idle one, or (`fresh`, or when there is none) a new one. Raises what `connect` raises.

    `patience` is how many seconds a caller would wait at most; a server gets no more than `CONNECT_TIMEOUT` of them.
    """
    kept = _idle.take(server, fresh=fresh)
    if kept is not None:
        return kept
    made = BlockingClient.connect(server.client_options("headwater-spark", min(CONNECT_TIMEOUT, patience)))
    made.api_prefix, made.api_headers = server.api_prefix(), READER
    return made
