"""Where the Iggy face keeps what it stores.

    <directory>/lock               held while a server uses it
    <directory>/catalog.a .b       streams, topics, groups, users (`catalog`), two checked copies
    <directory>/logs/<uid>/        one partition's log (`headwater.streams`)
    <directory>/offsets/<uid>.a .b the consumer offsets of one topic (JSON, `Offsets`)

A log without an owner in the catalog is what a crash leaves of a creation or a deletion; it is removed at start, but
only when the catalog was read whole: data is never deleted because its description was lost.

All of this blocks and belongs in a worker thread, or before the loop has work.
"""

import logging

import msgspec

from headwater.errors import EnvironmentProblem
from headwater.iggy import catalog as catalogs
from headwater.iggy.catalog import Catalog
from headwater.streams import meta
from headwater.streams.files import File, Files
from headwater.streams.log import Log, LogOptions

logger = logging.getLogger(__name__)


class Offsets(msgspec.Struct):
    """Committed offsets of a topic: by position of the partition, then by consumer (`c:` or `g:` and its id)."""

    stored: dict[int, dict[str, int]] = {}

    def drop_partitions(self, count: int) -> None:
        """Forget what is known of partitions from position `count` on."""
        for index in [index for index in self.stored if index >= count]:
            del self.stored[index]

    def drop_consumer(self, consumer: str) -> None:
        for stored in self.stored.values():
            stored.pop(consumer, None)


class Store:
    """The directory of one server. Raises EnvironmentProblem when it cannot be used."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        try:
            files.mkdir(f"{directory}/logs")
            files.mkdir(f"{directory}/offsets")
            self._lock: File = files.lock(f"{directory}/lock")
        except BlockingIOError as error:
            raise EnvironmentProblem(
                f"another server uses the directory {directory}", value=directory, hint="give each its own"
            ) from error
        except OSError as error:
            raise EnvironmentProblem(f"the directory {directory} cannot be used: {error}", value=directory) from error

    def close(self) -> None:
        """Let another server have the directory."""
        self._lock.close()

    def load(self) -> Catalog | None:
        """The catalog; None where there never was one. Raises EnvironmentProblem when it cannot be read."""
        path = f"{self._directory}/catalog"
        damage: list[str] = []
        try:
            document = meta.load(self._files, path, damage)
        except OSError as error:
            raise EnvironmentProblem(f"{path} cannot be read: {error}", value=path) from error
        for complaint in damage:
            logger.warning("document_damaged %s", complaint)
        if document is None:
            if damage or self._files.listdir(f"{self._directory}/logs"):
                raise EnvironmentProblem(
                    f"{path} is lost, and there was one", value=path, hint="restore it: nothing was touched"
                )
            return None
        try:
            return catalogs.decode(document)
        except msgspec.MsgspecError as error:
            raise EnvironmentProblem(f"{path} is of another version: {error}", value=path) from error

    def save(self, document: bytes) -> None:
        """Make the catalog durable. Raises OSError."""
        meta.save(self._files, f"{self._directory}/catalog", document)

    def sweep(self, catalog: Catalog) -> None:
        """Remove logs and offsets that nothing in the catalog owns. Raises OSError."""
        topics = [topic for stream in catalog.streams for topic in stream.topics]
        logs = {str(uid) for topic in topics for uid in topic.partitions}
        for name in self._files.listdir(f"{self._directory}/logs"):
            if name.isdigit() and name not in logs:
                logger.info("ownerless_log_removed uid=%s", name)
                self.remove_log(int(name))
        owners = {str(topic.uid) for topic in topics}
        for name in {name.partition(".")[0] for name in self._files.listdir(f"{self._directory}/offsets")}:
            if name not in owners:
                meta.remove(self._files, f"{self._directory}/offsets/{name}")

    def open_log(self, uid: int, options: LogOptions, now_ns: int) -> Log:
        """The log of a partition, recovered or new. Raises StorageError."""
        return Log.open(self._files, f"{self._directory}/logs/{uid}", options, now_ns)

    def remove_log(self, uid: int) -> None:
        """Remove a log that is closed; not an error when it is not there. Raises OSError."""
        self._remove_tree(f"{self._directory}/logs/{uid}")
        self._files.sync_directory(f"{self._directory}/logs")

    def _remove_tree(self, path: str) -> None:
        try:
            names = self._files.listdir(path)
        except FileNotFoundError:
            return
        for name in names:
            self._files.unlink(f"{path}/{name}")
        self._files.rmdir(path)

    def load_offsets(self, uid: int) -> Offsets:
        """The committed offsets of a topic; none where they cannot be read, which costs repetition, not loss."""
        path = f"{self._directory}/offsets/{uid}"
        damage: list[str] = []
        try:
            document = meta.load(self._files, path, damage)
            for complaint in damage:
                logger.warning("document_damaged %s", complaint)
            return msgspec.json.decode(document, type=Offsets) if document is not None else Offsets()
        except (OSError, msgspec.MsgspecError) as error:
            logger.error("offsets_unreadable path=%s reason=%s", path, error)
            return Offsets()

    def save_offsets(self, uid: int, document: bytes) -> None:
        """Make the committed offsets of a topic durable. Raises OSError."""
        meta.save(self._files, f"{self._directory}/offsets/{uid}", document)

    def remove_offsets(self, uid: int) -> None:
        meta.remove(self._files, f"{self._directory}/offsets/{uid}")
