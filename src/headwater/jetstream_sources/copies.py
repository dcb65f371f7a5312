"""The copies that one stream makes of others: its mirror, or its sources.

They begin when the API answers, follow the stream's configuration, and end with the stream. A source that is taken away and
comes back goes on behind the last message of it that was taken: `positions` are never forgotten.
"""

from headwater.errors import StorageError
from headwater.exchange.router import Router
from headwater.jetstream_documents.streams import SourceInfo, StreamConfig
from headwater.jetstream_sources.asking import Asking, CopyingStream
from headwater.jetstream_sources.copier import Copier, CopyTarget
from headwater.jetstream_sources.stamp import Position


class Copies:
    """`positions`: by index name, what the stream has of its origins, as of the last start; kept up by `note`."""

    def __init__(self, target: CopyTarget, router: Router, account: str, domain: str) -> None:
        self._target = target
        self._router = router
        self._stream = CopyingStream(target.name, account, domain)
        self._mirror: Copier | None = None
        self._sources: list[Copier] = []

    def follow(self, config: StreamConfig, positions: dict[str, Position]) -> None:
        """Copy what this configuration names, and nothing else. What goes on is not disturbed."""
        self.note(positions)
        wanted = self._asked(config)
        for copier in self._all():
            if copier.asking not in wanted:
                copier.stop(for_good=True)
        kept = [copier for copier in self._all() if copier.asking in wanted]
        self._mirror, self._sources = None, []
        for asking in wanted:
            known = next((one for one in kept if one.asking == asking), None)
            copier = known or Copier(asking, self._target, self._router, self._begin(asking, positions))
            if known is None:
                copier.start()
            if asking.is_mirror:
                self._mirror = copier
            else:
                self._sources.append(copier)

    def note(self, positions: dict[str, Position]) -> None:
        """Bring `positions` up to what is durable now."""
        for copier in self._sources:
            if (position := copier.position) is not None:
                positions[copier.index] = position

    def infos(self) -> tuple[SourceInfo | None, list[SourceInfo] | None]:
        """What STREAM.INFO says of the mirror and of the sources."""
        mirror = self._mirror.info() if self._mirror is not None else None
        return mirror, [copier.info() for copier in self._sources] or None

    def on_lost(self, error: StorageError) -> None:
        """What was staged could not be written."""
        for copier in self._all():
            copier.on_lost(error)

    def on_stream_made(self, name: str) -> None:
        """A stream of this account was made: a copy of it begins at once."""
        for copier in self._all():
            if copier.asking.source.name == name and copier.asking.source.external is None:
                copier.hurry()

    def stop(self, *, for_good: bool = False) -> None:
        """Copy nothing more. `for_good`: the stream is deleted."""
        for copier in self._all():
            copier.stop(for_good=for_good)

    def _all(self) -> list[Copier]:
        return [copier for copier in (self._mirror, *self._sources) if copier is not None]

    def _asked(self, config: StreamConfig) -> list[Asking]:
        if config.mirror is not None:
            return [Asking(config.mirror, self._stream, is_mirror=True)]
        asked: list[Asking] = []
        for source in config.sources or ():
            twice = any(source.name == other.source.name for other in asked)
            asked.append(Asking(source, self._stream, is_mirror=False, twice=twice))
        return asked

    def _begin(self, asking: Asking, positions: dict[str, Position]) -> Position | None:
        if asking.is_mirror:
            last = self._target.last_sequence
            return Position(last) if last else None
        return positions.get(asking.index) or positions.get(asking.source.name)
