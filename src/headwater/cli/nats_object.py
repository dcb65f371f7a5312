"""`headwater object …`: object stores, with the terms and options of the `nats` tool."""

import asyncio
import os
import sys
from pathlib import Path
from typing import IO, Annotated, BinaryIO, Literal, cast

from headwater.cli.commands import Argument, Commands, Option
from headwater.cli.nats_options import Force, Storage
from headwater.cli.nats_session import (
    confirm,
    current,
    headers_from,
    jetstream_of,
    run_app,
    seconds,
    size,
    spell_bytes,
    spell_limit,
    table,
)
from headwater.client.client import Client
from headwater.client.object_store import ObjectInfo, StoreConfig
from headwater.errors import ConfigError

app = Commands("Object stores.")
Progress = Annotated[bool, Option("--progress/--no-progress", help="show how far it is")]
SHOWN_FROM = 1 << 20  # bytes; for less, a progress bar would disappear before it could be seen


def objects(arguments: list[str]) -> int:
    """The verb `object`."""
    return run_app(app, "object", arguments)


@app.command("add")
def add_store(
    bucket: str,
    ttl: Annotated[str, Option("--ttl", help="how long an object lives")] = "0s",
    max_bucket_size: Annotated[str, Option("--max-bucket-size")] = "-1",
    storage: Storage = "file",
    replicas: Annotated[int, Option("--replicas")] = 1,
    description: Annotated[str, Option("--description")] = "",
    compress: Annotated[bool, Option("--compress/--no-compress")] = False,
) -> None:
    """Create the store BUCKET."""
    config = StoreConfig(
        bucket=bucket,
        ttl=seconds(ttl),
        max_bytes=size(max_bucket_size),
        storage=cast(Literal["file", "memory"], storage),
        replicas=replicas,
        description=description,
        compression=compress,
    )
    current().run(lambda client: jetstream_of(client).create_object_store(config))
    current().show({"bucket": bucket}, lambda: [f"Object store {bucket} is there"])


@app.command("put")
def put(
    bucket: str,
    file: Annotated[str, Argument(help="- or nothing: read from stdin")] = "-",
    name: Annotated[str, Option("--name", help="the object's, in place of the file's")] = "",
    description: Annotated[str, Option("--description")] = "",
    headers: Annotated[list[str], Option("-H", "--header", help="Name:value, as often as you like")] = [],  # noqa: B006
    progress: Progress = True,
    force: Force = False,
) -> None:
    """Store FILE as an object, in place of one of that name."""
    if file == "-" and not name:
        raise ConfigError("what comes from stdin needs a name", hint="--name NAME")
    named = name or file
    kept: dict[str, list[str]] = {}
    for key, value in headers_from(headers):
        kept.setdefault(key, []).append(value)

    async def run(client: Client) -> ObjectInfo:
        store = await jetstream_of(client).object_store(bucket)
        if not force and any(each.name == named for each in await store.objects()):
            confirm(f"Replace existing object {bucket} > {named}?", force=force)
        if file == "-":
            return await store.put(named, sys.stdin.buffer.read(), description=description, headers=kept or None)
        with _open(file) as source, _Bar(f"putting {named}", os.stat(source.fileno()).st_size, shown=progress) as bar:
            counted = cast(BinaryIO, _Counted(source, bar))
            return await store.put(named, counted, description=description, headers=kept or None)

    info = current().run(run)
    current().show(info, lambda: _describe(info))


@app.command("get")
def get(
    bucket: str,
    name: str,
    output: Annotated[str, Option("--output", "-O", help="a file, or - for stdout; else the object's name")] = "",
    progress: Progress = True,
    force: Force = False,
) -> None:
    """Read an object into a file."""
    path = Path(output or Path(name).name)
    if output != "-" and path.exists():
        confirm(f"Replace existing file {path}?", force=force)

    async def run(client: Client) -> ObjectInfo:
        store = await jetstream_of(client).object_store(bucket)
        info = await store.info(name)
        if output == "-":
            async for chunk in store.chunks(name):
                sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
            return info
        # The file gets its name only once it is complete and its digest has been verified.
        part = path.with_name(f"{path.name}.part")
        try:
            with _open(str(part), "wb") as target, _Bar(f"getting {name}", info.size, shown=progress) as bar:
                async for chunk in store.chunks(name):
                    await asyncio.to_thread(target.write, chunk)
                    bar.advance(len(chunk))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        return info

    info = current().run(run)
    if output != "-":
        wrote = f"Wrote: {spell_bytes(info.size)} to {path}"
        current().show({"file": str(path), "size": info.size}, lambda: [wrote])


@app.command("info")
@app.command("show", hidden=True)
@app.command("status", hidden=True)
def info(bucket: str, name: Annotated[str, Argument(help="without it, the store")] = "") -> None:
    """What is known of an object, or of a store."""

    async def run(client: Client) -> None:
        store = await jetstream_of(client).object_store(bucket)
        if name:
            found = await store.info(name)
            current().show(found, lambda: _describe(found))
            return
        status = await store.status()
        config = status.config
        lines = [
            f"Information for Object Store Bucket {bucket} created {status.created[:19].replace('T', ' ')}",
            "",
            f"         Replicas: {config.num_replicas}",
            f"              TTL: {f'{config.max_age:g}s' if config.max_age else 'unlimited'}",
            f"           Sealed: {'true' if config.sealed else 'false'}",
            f"             Size: {spell_bytes(status.state.bytes)}",
            f"     Maximum Size: {spell_limit(config.max_bytes, spell_bytes)}",
            f"          Storage: {config.storage}",
        ]
        current().show(status, lambda: lines)

    current().run(run)


@app.command("ls")
@app.command("list", hidden=True)
def list_objects(
    bucket: Annotated[str, Argument(help="without it, all stores")] = "",
    names: Annotated[bool, Option("--names", "-n")] = False,
) -> None:
    """The objects of a store, or all stores."""

    async def run(client: Client) -> None:
        if not bucket:
            stores = [each for each in await jetstream_of(client).streams() if each.config.name.startswith("OBJ_")]
            found = [each.config.name[4:] for each in stores]
            rows = ((each.config.name[4:], each.config.description, spell_bytes(each.state.bytes)) for each in stores)
            if current().json or names:
                current().show(found, lambda: found)
            else:
                table("Object Store Buckets", ["Bucket", "Description", "Size"], rows)
            return
        held = await (await jetstream_of(client).object_store(bucket)).objects()
        if current().json or names:
            current().show(held, lambda: [each.name for each in held])
        elif not held:
            print("No entries found")
        else:
            entries = ((each.name, spell_bytes(each.size), each.mtime[:19].replace("T", " ")) for each in held)
            table("Bucket Contents", ["Name", "Size", "Time"], entries)

    current().run(run)


@app.command("del")
@app.command("rm", hidden=True)
def delete(
    bucket: str, name: Annotated[str, Argument(help="without it, the whole store")] = "", force: Force = False
) -> None:
    """Delete an object, or a store with all its objects."""
    confirm(f"Delete {f'object {bucket} > {name}' if name else f'bucket {bucket}'}?", force=force)

    async def run(client: Client) -> None:
        if name:
            await (await jetstream_of(client).object_store(bucket)).delete(name)
        elif not await jetstream_of(client).delete_object_store(bucket):
            raise ConfigError(f"there is no object store {bucket!r}", value=bucket)

    current().run(run)


@app.command("seal")
def seal(bucket: str, force: Force = False) -> None:
    """Let nothing be written or deleted any more; this cannot be taken back."""
    confirm(f"Really seal Bucket {bucket}, sealed buckets can not be unsealed or modified?", force=force)

    async def run(client: Client) -> None:
        await (await jetstream_of(client).object_store(bucket)).seal()

    current().run(run)
    current().show({"bucket": bucket, "sealed": True}, lambda: [f"{bucket} has been sealed"])


@app.command("watch")
def watch(bucket: str, count: Annotated[int, Option("--count", min=0, help="end after so many; 0: never")] = 0) -> None:
    """Print what is there, and changes as they come."""

    async def run(client: Client) -> None:
        number = 0
        async for found in (await jetstream_of(client).object_store(bucket)).watch():
            number += 1
            what = "DEL" if found.deleted else "PUT"
            line = f"[{found.mtime[:19].replace('T', ' ')}] {what} {bucket} > {found.name}: {spell_bytes(found.size)}"
            current().show(found, lambda line=line: [line])  # type: ignore[misc]
            sys.stdout.flush()
            if number == count:
                return

    current().run(run)


class _Bar:
    """A progress bar on stderr for a transfer of `total` bytes; hidden for small ones, and when stderr is not a terminal."""

    def __init__(self, what: str, total: int, *, shown: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
        from rich.progress import Progress as Display

        parts = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        hidden = not shown or current().json or total < SHOWN_FROM
        self._display = Display(*parts, console=Console(stderr=True), disable=hidden)
        self._task = self._display.add_task(what, total=total)

    def __enter__(self) -> "_Bar":
        self._display.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._display.stop()

    def advance(self, count: int) -> None:
        self._display.advance(self._task, count)


class _Counted:
    """The methods of a file that `ObjectStore.put` uses; reads advance the bar."""

    def __init__(self, source: IO[bytes], bar: _Bar) -> None:
        self._source = source
        self._bar = bar

    def read(self, size: int = -1) -> bytes:
        chunk = self._source.read(size)
        self._bar.advance(len(chunk))
        return chunk


def _open(path: str, mode: Literal["rb", "wb"] = "rb") -> IO[bytes]:
    try:
        return Path(path).open(mode)
    except OSError as error:
        raise ConfigError(f"{path} cannot be opened: {error.strerror}", value=path) from None


def _describe(found: ObjectInfo) -> list[str]:
    headers = [f"              {key}: {value}" for key, values in (found.headers or {}).items() for value in values]
    return [
        f"Object information for {found.bucket} > {found.name}",
        "",
        *([f"      Description: {found.description}"] if found.description else []),
        f"             Size: {spell_bytes(found.size)}",
        f"Modification Time: {found.mtime}",
        f"           Chunks: {found.chunks:,}",
        f"           Digest: {found.digest}",
        *(["          Headers:", *headers] if headers else []),
    ]
