"""The directory of the Iggy face.

    <directory>/lock               held while a server uses it
    <directory>/catalog.a .b       streams, topics, groups, users (`catalog`), two checked copies
    <directory>/store.a .b         empty documents that carry the identity of this directory
    <directory>/logs/<uid>/        one partition's log (`headwater.streams`)
    <directory>/offsets/<uid>.a .b the consumer offsets of one topic (JSON, `Offsets`)

A log without an owner in the catalog is left by a crash during a creation or deletion; it is removed at start, but only
if the catalog was read completely: data is never deleted because its description was lost. A log whose uid the catalog
has not assigned yet does not belong to this catalog (it was copied here, or the catalog is an older one): it stays.

Every file has the identity of its partition or topic, which is also in the catalog; files copied from elsewhere are put
aside and become findings (docs/adr/0019). The catalog has the identity of the directory: with another server's catalog,
these logs would have no owner.

All of this blocks and belongs in a worker thread, or before the loop has work.
"""

import logging
import os
from collections.abc import Callable, Sequence

import msgspec

from headwater.durable_files import documents
from headwater.durable_files.documents import Copy
from headwater.durable_files.files import File, Files, storage_error
from headwater.durable_files.store_directory import remove_tree, take_directory
from headwater.errors import EnvironmentProblem, StorageError
from headwater.iggy import catalog as catalogs
from headwater.iggy.catalog import Catalog
from headwater.iggy.foreign_store import refuse_foreign_store
from headwater.streams.finding import Finding
from headwater.streams.log import Log, LogOptions

logger = logging.getLogger(__name__)


class Offsets(msgspec.Struct):
    """Committed offsets of a topic: by position of the partition, then by consumer (`c:` or `g:` and its id)."""

    stored: dict[int, dict[str, int]] = {}

    def drop_partitions(self, count: int) -> None:
        """Drop the offsets of partitions from position `count` on."""
        for index in [index for index in self.stored if index >= count]:
            del self.stored[index]

    def draw_back(self, ends: Sequence[int]) -> list[str]:
        """Let no consumer be beyond the end of a log, of which `ends` has one for each partition: what is stored there next
        would not come to it. Returns which were. Logs end earlier after a power loss, or when a stream was restored."""
        found: list[str] = []
        for index, end in enumerate(ends):
            stored = self.stored.get(index, {})
            for consumer in [consumer for consumer, offset in stored.items() if offset >= max(1, end)]:
                found.append(f"{consumer} at {stored.pop(consumer)}, partition {index} ends at {end}")
                if end:
                    stored[consumer] = end - 1
        return found

    def drop_consumer(self, consumer: str) -> None:
        for stored in self.stored.values():
            stored.pop(consumer, None)


class Store:
    """The directory of one server. `findings`: its faults. Raises EnvironmentProblem when it cannot be used, or has
    streams of Apache Iggy's server."""

    def __init__(self, files: Files, directory: str, entropy: Callable[[int], bytes] = os.urandom) -> None:
        refuse_foreign_store(files, directory)
        self.findings: list[Finding] = []
        self._files = files
        self._directory = directory
        self._entropy = entropy
        self._identity = documents.NO_IDENTITY  # of this directory, once there is a catalog
        self._lock: File = take_directory(files, directory, ["logs", "offsets"], "Can't start Iggy")

    def close(self) -> None:
        """Release the lock on the directory."""
        self._lock.close()

    def load(self) -> Catalog | None:
        """The catalog; None in a new directory. Raises EnvironmentProblem when it cannot be read, or is another
        server's."""
        path = f"{self._directory}/catalog"
        damage: list[str] = []
        try:
            owner = documents.load_copy(self._files, f"{self._directory}/store")
            identity = owner.identity if owner is not None else documents.NO_IDENTITY
            copy = documents.load_copy(self._files, path, damage, identity)
        except OSError as error:
            raise EnvironmentProblem(f"{path} cannot be read: {error}", value=path) from error
        if copy is None:
            if damage or self._files.listdir(f"{self._directory}/logs"):
                raise EnvironmentProblem(
                    "; ".join([f"{path} is lost, and there was one", *damage]),
                    value=path,
                    hint="put back the catalog that this server wrote: nothing was touched",
                )
            return None
        try:
            catalog = catalogs.decode(copy.payload)
        except msgspec.MsgspecError as error:
            raise EnvironmentProblem(f"{path} is of another version: {error}", value=path) from error
        self._identity = copy.identity if owner is None else identity
        if damage:
            self._mend("catalog", path, copy.payload, damage, self._identity)
        if owner is None:
            try:
                self._sign(copy)
            except (
                OSError
            ) as error:  # the next start tries again; until then the catalog of another server is not refused
                logger.warning("iggy_store_not_signed directory=%s reason=%s", self._directory, error)
        return catalog

    def _sign(self, catalog: Copy) -> None:
        """Give the directory and its catalog the same identity."""
        if catalog.identity == documents.NO_IDENTITY:
            self.save(catalog.payload)
        else:
            documents.save(self._files, f"{self._directory}/store", b"", catalog.identity)

    def save(self, document: bytes) -> None:
        """Make the catalog durable. Raises OSError."""
        if self._identity == documents.NO_IDENTITY:  # a new directory, or an earlier release's
            identity = self._entropy(len(documents.NO_IDENTITY))
            documents.save(self._files, f"{self._directory}/catalog", document, identity)
            documents.save(self._files, f"{self._directory}/store", b"", identity)
            self._identity = identity
            return
        documents.save(self._files, f"{self._directory}/catalog", document, self._identity)

    def sweep(self, catalog: Catalog) -> None:
        """Remove logs and offsets that nothing in the catalog owns. Raises OSError."""
        topics = [topic for stream in catalog.streams for topic in stream.topics]
        logs = {str(uid) for topic in topics for uid in topic.partitions}
        for name in self._files.listdir(f"{self._directory}/logs"):
            if name in logs:
                continue
            if name.isdigit() and int(name) < catalog.next_uid:
                logger.info("ownerless_log_removed uid=%s", name)
                self.remove_log(int(name))
            else:
                path = f"{self._directory}/logs/{name}"
                self.findings.append(Finding("", path, "belongs to no partition in the catalog", "left in place"))
        owners = {str(topic.uid) for topic in topics}
        for name in {name.partition(".")[0] for name in self._files.listdir(f"{self._directory}/offsets")}:
            if name not in owners:
                documents.remove(self._files, f"{self._directory}/offsets/{name}")

    def open_log(self, uid: int, options: LogOptions, now_ns: int, identity: bytes = documents.NO_IDENTITY) -> Log:
        """The log of a partition, recovered; or a new one, unless its `identity` is known. Raises StorageError."""
        path = f"{self._directory}/logs/{uid}"
        if identity != documents.NO_IDENTITY:
            try:
                names = self._files.listdir(path)
            except OSError as error:
                raise storage_error(f"open the log {path}", error) from error
            if not any(name.endswith((".log", *documents.COPIES)) for name in names):
                raise StorageError(
                    f"the log {path} is empty", value=path, hint="put its files back, or delete the topic"
                )
        return Log.open(self._files, path, options, now_ns, identity=identity)

    def remove_log(self, uid: int, sync: bool = True) -> None:
        """Remove a log that is closed; not an error when it is not there. Raises OSError."""
        remove_tree(self._files, f"{self._directory}/logs/{uid}")
        if sync:
            self.sync_logs()

    def sync_logs(self) -> None:
        """Make the names of the logs durable. Raises OSError."""
        self._files.sync_directory(f"{self._directory}/logs")

    def identity_of_offsets(self, uid: int) -> bytes:
        """The identity in the stored offsets of a topic; NOBODY if there are none, or an earlier release wrote them."""
        try:
            copy = documents.load_copy(self._files, f"{self._directory}/offsets/{uid}")
        except OSError:
            return documents.NO_IDENTITY
        return copy.identity if copy is not None else documents.NO_IDENTITY

    def load_offsets(self, uid: int, identity: bytes = documents.NO_IDENTITY, topic: str = "") -> Offsets:
        """The committed offsets of a topic; empty if they cannot be read: messages are then polled again, none is
        lost."""
        path = f"{self._directory}/offsets/{uid}"
        damage: list[str] = []
        try:
            document = documents.load(self._files, path, damage, identity)
            if document is None and damage:
                raise StorageError("; ".join(damage))
            offsets = msgspec.json.decode(document, type=Offsets) if document is not None else Offsets()
        except (OSError, StorageError, msgspec.MsgspecError) as error:
            what, done = f"the committed offsets cannot be read: {error}", "consumers begin anew: messages come again"
            self.findings.append(Finding(topic, path, what, done, severity="loss"))
            return Offsets()
        if damage and document is not None:
            self._mend(topic, path, document, damage, identity)
        return offsets

    def save_offsets(self, uid: int, document: bytes, identity: bytes = documents.NO_IDENTITY) -> None:
        """Make the committed offsets of a topic durable. Raises OSError."""
        documents.save(self._files, f"{self._directory}/offsets/{uid}", document, identity)

    def remove_offsets(self, uid: int) -> None:
        documents.remove(self._files, f"{self._directory}/offsets/{uid}")

    def _mend(
        self, owner: str, path: str, document: bytes, damage: list[str], identity: bytes = documents.NO_IDENTITY
    ) -> None:
        """Rewrite both copies of a document with one intact copy; the damage becomes findings."""
        try:
            documents.save(self._files, path, document, identity)
            done = "written again from the other copy"
        except OSError as error:
            done = f"the other copy serves, and a new one cannot be written: {error.strerror}"
        self.findings += [Finding(owner, path, complaint, done) for complaint in damage]
