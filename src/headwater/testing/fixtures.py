"""pytest fixtures. Load them with `pytest_plugins = ["headwater.testing"]`, or `-p headwater.testing`.

    broker             a broker on a free port, for one test
    jetstream_broker   one with streams, in a temporary directory
    broker_factory     starts any number of brokers, with any options of headwater.Broker

All brokers stop at the end of the test. Streams use sync = never: no test has to survive a power failure.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Unpack

import pytest

if TYPE_CHECKING:
    from headwater.server.broker_arguments import AllBrokerArguments
    from headwater.testing.running import RunningBroker


class BrokerFactory(Protocol):
    """The type of the fixture `broker_factory`: call it with the keywords of `headwater.Broker`."""

    def __call__(self, **options: "Unpack[AllBrokerArguments]") -> "RunningBroker": ...


@pytest.fixture
def broker_factory(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[BrokerFactory]":
    """`broker_factory(**options)`: a started RunningBroker; with `jetstream=True` its store is a new directory."""
    from headwater.testing.running import RunningBroker

    started: list[RunningBroker] = []

    def make(**options: "Unpack[AllBrokerArguments]") -> RunningBroker:
        if options.get("jetstream"):
            if "store_dir" not in options:
                options["store_dir"] = Path(tmp_path_factory.mktemp("streams"))
            options.setdefault("sync", "never")
        made = RunningBroker(**options)
        made.start()
        started.append(made)
        return made

    yield make
    for one in started:
        one.stop()


@pytest.fixture
def broker(broker_factory: BrokerFactory) -> "RunningBroker":
    """A broker without streams on a free port of 127.0.0.1."""
    return broker_factory()


@pytest.fixture
def jetstream_broker(broker_factory: BrokerFactory) -> "RunningBroker":
    """A broker with streams on a free port of 127.0.0.1."""
    return broker_factory(jetstream=True)
