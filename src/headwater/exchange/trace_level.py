"""Level and logger of traced ops. Separate from `tracing`, which only a broker that logs ops imports."""

TRACE_LEVEL = 5  # below logging.DEBUG
TRACE_LOGGER = "headwater.exchange.tracing"
