"""Random conversations with JetStream, held with the real nats-server and with ours: every answer is the same.

HEADWATER_CONVERSATIONS=1000 holds so many of each theme; a difference names its theme, seed and step, and both answers.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.headwater_server import HeadwaterServer, start_headwater
from support.jetstream_conversation import hold, is_tolerated, without_pending
from support.jetstream_copy_talk import copy_conversation
from support.jetstream_requests import Step, conversation
from support.jetstream_settling import first_difference
from support.jetstream_themes import NAMES, theme
from support.nats_server import NatsServer, start_nats_server

pytestmark = pytest.mark.interop

COUNT = int(os.environ.get("HEADWATER_CONVERSATIONS", "0"))
SEEDS = {"plain": range(100, 100 + (COUNT or 6))} | {name: range(100, 100 + (COUNT or 1)) for name in NAMES}
LENGTH = 40
COPY_SEEDS = range(100, 100 + COUNT) if COUNT else (101, 112)
COPY_LENGTH = 20 if COUNT else 8
# Seconds of quiet, attempt by attempt. nats-server tells its consumers of a message behind our back: now and then a pull
# comes before that, and a delivery after its time.
QUIETS = (0.04, 0.3, 1.0)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NatsServer, HeadwaterServer]]:
    directory = tmp_path_factory.mktemp("requests")
    with (
        start_nats_server(directory / "real") as real,
        start_headwater(directory / "ours", "-js", "-sd", str(directory / "ours" / "js")) as ours,
    ):
        yield real, ours


def differences(
    servers: tuple[NatsServer, HeadwaterServer], steps: list[Step], quiet: float, *, filters_change: bool
) -> list[str]:
    """Where the two answers differ, the first difference first."""
    with ThreadPoolExecutor(2) as pool:
        real, ours = pool.map(lambda server: hold(server.port, steps, quiet), servers)
    if filters_change:
        real, ours = without_pending(real), without_pending(ours)
    return [
        f"step {number} {step}: ours {mine}, the real one {theirs}"
        for number, (step, theirs, mine) in enumerate(zip(steps, real, ours, strict=True))
        if theirs != mine and not is_tolerated(step, theirs, mine)
    ]


@pytest.mark.parametrize(("about", "seed"), [(name, seed) for name, seeds in SEEDS.items() for seed in seeds])
def test_a_random_conversation_is_the_same_with_both(
    servers: tuple[NatsServer, HeadwaterServer], about: str, seed: int
) -> None:
    for quiet in QUIETS:
        subject = theme(about, seed)
        steps = conversation(seed, LENGTH, subject)
        found = differences(servers, steps, quiet, filters_change=subject.filters_change)
        if not found:
            return
    pytest.fail("\n".join(found[:3]))


@pytest.mark.parametrize("seed", COPY_SEEDS)
def test_a_random_conversation_about_mirrors_and_sources_is_the_same_with_both(
    servers: tuple[NatsServer, HeadwaterServer], seed: int
) -> None:
    steps = copy_conversation(seed, COPY_LENGTH)
    for quiet in QUIETS:
        found = first_difference((servers[0].port, servers[1].port), steps, quiet)
        if found is None:
            return
        number, real, ours = found
    pytest.fail(f"step {number} {steps[number]}: ours {ours}, the real one {real}")
