"""Object stores over JetStream (ADR-20): large values as rows of chunks, and a document about each.

    stream OBJ_<bucket>     $O.<bucket>.C.<nuid>              the chunks of one version of an object
                            $O.<bucket>.M.<base64url(name)>   its document: size, chunks, SHA-256; the newest one counts

A new version is written under a new nuid, then its document replaces the old one, then the old chunks are purged: a
reader gets one version or the other, never a mixture. Reads are checked against size and digest.
"""

# Since Python 3.14 an annotation is evaluated when it is read, in its class, where nats-py's `list` hides the type.
from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO, Literal, Self

import msgspec

from headwater.client.iteration import Iteration
from headwater.client.jetstream_api import JetStreamApi
from headwater.client.jetstream_types import ConsumerConfig, Placement, StreamConfig, StreamInfo
from headwater.client.key_value import checked_bucket
from headwater.client.nats_py_arguments import OBJECT_STORE as OBJECT_STORE_ARGUMENTS
from headwater.client.nats_py_arguments import take
from headwater.client.nats_py_modules import API_ATTRIBUTES
from headwater.client.nats_py_names import OBJECT_STORE, OBJECT_STORE_ADVICE, install
from headwater.client.ordered import OrderedConsumer
from headwater.client.publisher import Publisher
from headwater.client.units import Seconds, check_times, unset
from headwater.client_connection.connection_ops import BytesLike, bytes_of
from headwater.errors import DataLossError, JetStreamError, LocalProtocolError, SubjectError
from headwater.model.header_names import NatsHeader
from headwater.model.status import NOT_FOUND

CHUNK_SIZE = 128 * 1024
NO_STREAM = 10059


class StoreConfig(msgspec.Struct, kw_only=True, frozen=True):
    """An object store. `ttl` in seconds or a timedelta (0: for ever), sizes in bytes (-1: any)."""

    bucket: str
    description: str = ""
    ttl: Seconds = unset(0.0)
    max_bytes: int = -1
    storage: Literal["file", "memory"] = "file"
    replicas: int = 1
    compression: bool = False
    placement: Placement | None = None
    metadata: dict[str, str] | None = None

    def __post_init__(self) -> None:
        check_times(self)


class ObjectLink(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Another object (or with an empty name a whole store) that an object stands for."""

    bucket: str
    name: str = ""


class ObjectOptions(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How an object is stored."""

    link: ObjectLink | None = None
    max_chunk_size: int = 0


class ObjectInfo(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The description of an object. `digest` is `SHA-256=<base64url>`, `mtime` an RFC 3339 text."""

    name: str
    bucket: str = ""
    nuid: str = ""
    size: int = 0
    mtime: str = ""
    chunks: int = 0
    digest: str = ""
    deleted: bool = False
    description: str = ""
    headers: dict[str, list[str]] | None = None
    metadata: dict[str, str] | None = None
    options: ObjectOptions | None = None


class ObjectNotFound(JetStreamError):
    """There is no such object, or it was deleted; `value` is its name."""

    def __init__(self, bucket: str, name: str) -> None:
        super().__init__(NOT_FOUND, 10037, f"the object store {bucket!r} holds no object {name!r}")
        self.value = name


class ObjectStore:
    """One store. Made by `JetStream.object_store` and `JetStream.create_object_store`.

    `name` is that of an object, any text but the empty one (SubjectError). `description` is a text for people, `metadata`
    any pairs of text. Requests raise what `JetStreamApi` says. Source: ADR-20 of the NATS architecture.
    """

    def __init__(self, jetstream: JetStreamApi, bucket: str) -> None:
        self.bucket = bucket
        self.stream = f"OBJ_{bucket}"
        self._jetstream = jetstream

    def __repr__(self) -> str:
        return f"<ObjectStore {self.bucket!r}>"

    @classmethod
    async def bind(cls, jetstream: JetStreamApi, bucket: str) -> Self:
        """Raises JetStreamError when there is no such store."""
        await jetstream.stream_info(f"OBJ_{checked_bucket(bucket)}")
        return cls(jetstream, bucket)

    @classmethod
    async def create_store(cls, jetstream: JetStreamApi, config: StoreConfig) -> Self:
        """Raises JetStreamError when there is one with another configuration."""
        bucket = checked_bucket(config.bucket)
        await jetstream.create_stream(
            StreamConfig(
                name=f"OBJ_{bucket}",
                subjects=[f"$O.{bucket}.C.>", f"$O.{bucket}.M.>"],
                description=config.description,
                max_age=config.ttl,
                max_bytes=config.max_bytes,
                storage=config.storage,
                num_replicas=config.replicas,
                compression="s2" if config.compression else "none",
                placement=config.placement,
                metadata=config.metadata,
                discard="new",
                allow_rollup_hdrs=True,
                allow_direct=True,
            )
        )
        return cls(jetstream, bucket)

    if TYPE_CHECKING:  # nats-py's name for `info`, installed below; its `list` would hide the type of that name

        async def get_info(self, name: str, *, deleted: bool = False) -> ObjectInfo: ...

    async def status(self) -> StreamInfo:
        """The stream behind the store."""
        return await self._jetstream.stream_info(self.stream)

    async def put(
        self,
        name: str,
        data: BytesLike | BinaryIO,
        *,
        description: str = "",
        metadata: dict[str, str] | None = None,
        headers: dict[str, list[str]] | None = None,
        chunk_size: int = CHUNK_SIZE,
    ) -> ObjectInfo:
        """Store `data` as an object, replacing one of that name; a file is read chunk by chunk (its reads block).

        `headers`: by name, the values; readers get them in `ObjectInfo`. `chunk_size`: bytes of one message; below 1 it
        raises LocalProtocolError.

        The object becomes visible once it is completely stored; the chunks of a failed one are purged.
        """
        if chunk_size < 1:
            raise LocalProtocolError("a chunk holds at least one byte", value=chunk_size, limit=1)
        _meta_subject(self.bucket, name)
        before = await self._find(name)
        nuid = secrets.token_hex(11)
        chunks = f"$O.{self.bucket}.C.{nuid}"
        digest, size, count = hashlib.sha256(), 0, 0
        try:
            async with Publisher(self._jetstream.client, 64, self._jetstream.timeout) as publisher:
                for chunk in _pieces(data, chunk_size):
                    digest.update(chunk)
                    size += len(chunk)
                    count += 1
                    await publisher.publish(chunks, chunk)
            info = ObjectInfo(
                name=name,
                bucket=self.bucket,
                nuid=nuid,
                size=size,
                chunks=count,
                digest=_spell(digest.digest()),
                description=description,
                metadata=metadata,
                headers=headers,
                options=ObjectOptions(max_chunk_size=chunk_size),
            )
            info = await self._write(info)
        except BaseException:
            self._jetstream.client.publish(
                f"$JS.API.STREAM.PURGE.{self.stream}", msgspec.json.encode({"filter": chunks})
            )
            raise
        if before is not None and before.nuid:
            await self._purge(before.nuid)
        return info

    async def get(self, name: str) -> bytes:
        """A whole object. Raises ObjectNotFound, and DataLossError if it differs from what was stored."""
        return b"".join([chunk async for chunk in self.chunks(name)])

    async def chunks(self, name: str) -> AsyncIterator[bytes]:
        """An object chunk by chunk. Raises ObjectNotFound, and after the last chunk DataLossError if size or digest is
        wrong."""
        info = await self.info(name)
        if info.options is not None and (link := info.options.link) is not None:
            store = self if link.bucket == self.bucket else await ObjectStore.bind(self._jetstream, link.bucket)
            async for chunk in store.chunks(link.name):
                yield chunk
            return
        digest, size = hashlib.sha256(), 0
        if info.chunks:
            config = ConsumerConfig(filter_subject=f"$O.{self.bucket}.C.{info.nuid}")
            async for message in OrderedConsumer(self._jetstream, self.stream, config, True):
                digest.update(message.data)
                size += len(message.data)
                yield message.data
        if size != info.size or (info.digest and _spell(digest.digest()) != info.digest.rstrip("=") + _padding(info)):
            raise DataLossError(
                f"the object {name!r} of {self.bucket!r} is damaged: {size} of {info.size} bytes", value=name
            )

    async def info(self, name: str, *, deleted: bool = False) -> ObjectInfo:
        """The description of an object; with `deleted`, also of a deleted one. Raises ObjectNotFound."""
        info = await self._find(name)
        if info is None or (info.deleted and not deleted):
            raise ObjectNotFound(self.bucket, name)
        return info

    async def objects(self, *, deleted: bool = False) -> list[ObjectInfo]:
        """All objects, with `deleted` the deleted ones too."""
        config = ConsumerConfig(filter_subject=f"$O.{self.bucket}.M.>", deliver_policy="last_per_subject")
        found = [_read(message.data) async for message in OrderedConsumer(self._jetstream, self.stream, config, True)]
        return [info for info in found if deleted or not info.deleted]

    def watch(self, *, updates_only: bool = False) -> ObjectWatch:
        """The objects that the store holds, unless `updates_only`, and then every change: iterate over it."""
        config = ConsumerConfig(
            filter_subject=f"$O.{self.bucket}.M.>", deliver_policy="new" if updates_only else "last_per_subject"
        )
        return ObjectWatch(OrderedConsumer(self._jetstream, self.stream, config, False))

    async def update(self, name: str, *, description: str, metadata: dict[str, str] | None = None) -> ObjectInfo:
        """Change the description and metadata of an object. Raises ObjectNotFound."""
        info = await self.info(name)
        return await self._write(msgspec.structs.replace(info, description=description, metadata=metadata))

    async def link(self, name: str, target: ObjectInfo) -> ObjectInfo:
        """Make `name` a link to the object `target`, of this store or another."""
        to = ObjectLink(bucket=target.bucket, name=target.name)
        return await self._write(ObjectInfo(name=name, bucket=self.bucket, options=ObjectOptions(link=to)))

    async def delete(self, name: str) -> ObjectInfo:
        """Delete an object; its document stays as a marker. Raises ObjectNotFound."""
        info = await self.info(name)
        marker = ObjectInfo(name=name, bucket=self.bucket, nuid=info.nuid, deleted=True)
        marker = await self._write(marker)
        if info.nuid:
            await self._purge(info.nuid)
        return marker

    async def seal(self) -> None:
        """Seal the store: nothing can be written or deleted afterwards."""
        config = (await self.status()).config
        await self._jetstream.update_stream(msgspec.structs.replace(config, sealed=True))

    # ── inside ──

    async def _find(self, name: str) -> ObjectInfo | None:
        try:
            stored = await self._jetstream.get_message(self.stream, last_on=_meta_subject(self.bucket, name))
        except JetStreamError as error:
            if error.code == NOT_FOUND and error.err_code != NO_STREAM:
                return None
            raise
        return _read(stored.data)

    async def _write(self, info: ObjectInfo) -> ObjectInfo:
        info.mtime = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        # Other clients read `size` and `chunks` also where they are 0, and `omit_defaults` leaves those out.
        document = {"size": info.size, "chunks": info.chunks, **msgspec.to_builtins(info)}
        await self._jetstream.publish(
            _meta_subject(self.bucket, info.name), msgspec.json.encode(document), headers={NatsHeader.ROLLUP: "sub"}
        )
        return info

    async def _purge(self, nuid: str) -> None:
        await self._jetstream.purge_stream(self.stream, subject=f"$O.{self.bucket}.C.{nuid}")


class ObjectWatch(Iteration[ObjectInfo]):
    """Iterate over it; `async with` ends that at once after a `break`."""

    def __init__(self, consumer: OrderedConsumer) -> None:
        super().__init__()
        self._consumer = consumer

    async def _items(self) -> AsyncGenerator[ObjectInfo, None]:
        async with self._consumer as messages:
            async for message in messages:
                yield _read(message.data)


def _read(document: bytes) -> ObjectInfo:
    return msgspec.json.decode(document, type=ObjectInfo)


def _meta_subject(bucket: str, name: str) -> str:
    if not name:
        raise SubjectError("an object has a name", value=name)
    return f"$O.{bucket}.M.{base64.urlsafe_b64encode(name.encode()).decode()}"


def _spell(digest: bytes) -> str:
    return f"SHA-256={base64.urlsafe_b64encode(digest).decode()}"


def _padding(info: ObjectInfo) -> str:
    """The padding of base64 that some clients leave out."""
    return "=" * (-len(info.digest.removeprefix("SHA-256=").rstrip("=")) % 4)


def _pieces(data: BytesLike | BinaryIO, size: int) -> Iterator[bytes]:
    if not hasattr(data, "read"):
        whole = bytes_of(data)
        yield from (whole[start : start + size] for start in range(0, len(whole), size))
        return
    while chunk := data.read(size):
        yield chunk


install(ObjectStore, OBJECT_STORE, OBJECT_STORE_ADVICE)
install(ObjectInfo, {}, API_ATTRIBUTES["ObjectInfo"])
take(ObjectStore, OBJECT_STORE_ARGUMENTS)
