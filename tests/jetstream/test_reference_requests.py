"""Random conversations with JetStream, held with the real nats-server and with ours: every answer is the same.

HEADWATER_CONVERSATIONS=1000 holds so many; a difference names its seed, its step and both answers.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.headwater_server import HeadwaterServer, start_headwater
from support.jetstream_conversation import hold, is_tolerated
from support.jetstream_requests import Step, conversation
from support.nats_server import NatsServer, start_nats_server

pytestmark = pytest.mark.interop

SEEDS = range(100, 100 + int(os.environ.get("HEADWATER_CONVERSATIONS", "16")))
LENGTH = 40
ATTEMPTS = 3  # nats-server tells its consumers of a message behind our back: now and then a pull comes before that


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NatsServer, HeadwaterServer]]:
    directory = tmp_path_factory.mktemp("requests")
    with (
        start_nats_server(directory / "real") as real,
        start_headwater(directory / "ours", "-js", "-sd", str(directory / "ours" / "js")) as ours,
    ):
        yield real, ours


def differences(servers: tuple[NatsServer, HeadwaterServer], steps: list[Step]) -> list[str]:
    """What the two said differently, the first first."""
    with ThreadPoolExecutor(2) as pool:
        real, ours = pool.map(lambda server: hold(server.port, steps), servers)
    return [
        f"step {number} {step}: ours {mine}, the real one {theirs}"
        for number, (step, theirs, mine) in enumerate(zip(steps, real, ours, strict=True))
        if theirs != mine and not is_tolerated(step, theirs, mine)
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_conversation_is_the_same_with_both(servers: tuple[NatsServer, HeadwaterServer], seed: int) -> None:
    steps = conversation(seed, LENGTH)
    for _ in range(ATTEMPTS):
        found = differences(servers, steps)
        if not found:
            return
    pytest.fail("\n".join(found[:3]))
