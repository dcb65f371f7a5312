"""For the tests of programs that speak NATS: a broker in this process, and pytest fixtures that start one."""

from headwater.testing.running import RunningBroker

try:
    from headwater.testing.fixtures import broker, broker_factory, jetstream_broker
except ModuleNotFoundError as missing:
    if missing.name != "pytest":  # without pytest there is the broker alone
        raise

__all__ = ["RunningBroker", "broker", "broker_factory", "jetstream_broker"]
