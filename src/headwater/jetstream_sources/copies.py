"""The copies that one stream makes of others: its mirror, or its sources.

They start when the API is ready, follow the stream's configuration, and end with the stream. `positions` are never
discarded: a source that is removed and added again continues after the last message copied from it.
"""

from headwater.errors import StorageError
from headwater.exchange.router import Router
from headwater.jetstream_documents.streams import SourceInfo, StreamConfig
from headwater.jetstream_sources.copier import Copier, CopyTarget
from headwater.jetstream_sources.origin import CopyingStream, Origin
from headwater.jetstream_sources.stamp import Position


class Copies:
    """`positions`: by index name, the last messages copied from the origins as of the last start; updated by `note`."""

    def __init__(self, target: CopyTarget, router: Router, account: str, domain: str) -> None:
        self._target = target
        self._router = router
        self._stream = CopyingStream(target.name, account, domain)
        self._mirror: Copier | None = None
        self._sources: list[Copier] = []

    def follow(self, config: StreamConfig, positions: dict[str, Position]) -> None:
        """Start and stop copiers to match this configuration; unchanged ones keep running."""
        self.note(positions)
        wanted = self._requests(config)
        for copier in self._all():
            if copier.origin not in wanted:
                copier.stop(for_good=True)
        kept = [copier for copier in self._all() if copier.origin in wanted]
        self._mirror, self._sources = None, []
        for origin in wanted:
            known = next((one for one in kept if one.origin == origin), None)
            copier = known or Copier(origin, self._target, self._router, self._begin(origin, positions))
            if known is None:
                copier.start()
            if origin.is_mirror:
                self._mirror = copier
            else:
                self._sources.append(copier)

    def note(self, positions: dict[str, Position]) -> None:
        """Update `positions` with what is durable."""
        for copier in self._sources:
            if (position := copier.position) is not None:
                positions[copier.index] = position

    def infos(self) -> tuple[SourceInfo | None, list[SourceInfo] | None]:
        """The mirror and the sources in STREAM.INFO."""
        mirror = self._mirror.info() if self._mirror is not None else None
        return mirror, [copier.info() for copier in self._sources] or None

    def on_lost(self, error: StorageError) -> None:
        """Staged copies could not be written."""
        for copier in self._all():
            copier.on_lost(error)

    def on_stream_made(self, name: str) -> None:
        """A stream of this account was created: its copiers start at once."""
        for copier in self._all():
            if copier.origin.source.name == name and copier.origin.source.external is None:
                copier.hurry()

    def stop(self, *, for_good: bool = False) -> None:
        """Stop copying. `for_good`: the stream is being deleted."""
        for copier in self._all():
            copier.stop(for_good=for_good)

    def _all(self) -> list[Copier]:
        return [copier for copier in (self._mirror, *self._sources) if copier is not None]

    def _requests(self, config: StreamConfig) -> list[Origin]:
        if config.mirror is not None:
            return [Origin(config.mirror, self._stream, is_mirror=True)]
        origins: list[Origin] = []
        for source in config.sources or ():
            twice = any(source.name == other.source.name for other in origins)
            origins.append(Origin(source, self._stream, is_mirror=False, twice=twice))
        return origins

    def _begin(self, origin: Origin, positions: dict[str, Position]) -> Position | None:
        if origin.is_mirror:
            last = self._target.last_sequence
            return Position(last) if last else None
        return positions.get(origin.index) or positions.get(origin.source.name)
