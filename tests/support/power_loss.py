"""A JetStream on a recorded disk, cut off at any call: what a power loss leaves is served again."""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from support.recording_files import VARIANTS, RecordingFiles, Replay


class Loss(NamedTuple):
    """A power loss after `calls` calls; `files`: what is left."""

    calls: int
    files: RecordingFiles
    name: str


def losses(files: RecordingFiles, first: int, seed: int = 0, torn: int = 2) -> Iterator[Loss]:
    """At each call from `first` on: nothing, everything, or some (`torn` times) of what was not synced is left."""
    replay, random = Replay(files), Random(seed)
    for calls in range(first, len(files.calls) + 1):
        replay.advance(calls)
        for variant in VARIANTS:
            for again in range(torn if variant == "torn" else 1):
                yield Loss(calls, replay.crash(variant, random), f"{variant} {again} after {calls} calls")
