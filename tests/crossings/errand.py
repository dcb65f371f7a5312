"""What a way out is given, and what it yields."""

from collections.abc import AsyncGenerator
from typing import Final, NamedTuple

from crossings.messages import Got
from crossings.world import SUBJECTS, World


class Ready:
    """What a live reader yields once it is subscribed."""


READY: Final = Ready()
Received = AsyncGenerator["Got | Ready", None]


class Errand(NamedTuple):
    """What a way out is to read: one stream, and how many messages it holds (0 for live ones, who cannot know)."""

    world: World
    stream: str
    last: int = 0

    @property
    def subjects(self) -> str:
        """Of what is published into it."""
        return f"{SUBJECTS[self.stream]}.>"
