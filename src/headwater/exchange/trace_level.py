"""Where ops are logged: apart from `tracing`, which is imported only by a broker that logs them."""

TRACE_LEVEL = 5  # below logging.DEBUG
TRACE_LOGGER = "headwater.exchange.tracing"
