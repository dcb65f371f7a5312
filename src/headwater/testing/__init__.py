"""For the tests of programs that speak NATS: a broker in this process, and pytest fixtures that start one."""

from headwater.testing.fixtures import broker, broker_factory, jetstream_broker
from headwater.testing.running import RunningBroker

__all__ = ["RunningBroker", "broker", "broker_factory", "jetstream_broker"]
