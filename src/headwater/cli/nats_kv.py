"""`headwater kv …`: key-value buckets, with the terms and options of the `nats` tool."""

import json
import sys
from typing import Annotated, Literal, cast

from headwater.cli.commands import Argument, Commands, Option
from headwater.cli.nats_options import Force, Storage
from headwater.cli.nats_session import (
    confirm,
    current,
    jetstream_of,
    run_app,
    seconds,
    size,
    spell_bytes,
    spell_limit,
    table,
)
from headwater.cli.payloads import body_of, json_fields, plain, write_raw
from headwater.client.client import Client
from headwater.client.key_value import BucketConfig, Entry
from headwater.errors import ConfigError

app = Commands("Key-value buckets.")
Value = Annotated[str, Argument(help="- or nothing: read from stdin")]


def kv(arguments: list[str]) -> int:
    """The verb `kv`."""
    return run_app(app, "kv", arguments)


@app.command("add")
@app.command("new", hidden=True)
def add_bucket(
    bucket: str,
    history: Annotated[int, Option("--history", help="revisions kept of each key")] = 1,
    ttl: Annotated[str, Option("--ttl", help="how long a value lives")] = "0s",
    max_value_size: Annotated[str, Option("--max-value-size")] = "-1",
    max_bucket_size: Annotated[str, Option("--max-bucket-size")] = "-1",
    storage: Storage = "file",
    replicas: Annotated[int, Option("--replicas")] = 1,
    description: Annotated[str, Option("--description")] = "",
) -> None:
    """Create BUCKET."""
    config = BucketConfig(
        bucket=bucket,
        history=history,
        ttl=seconds(ttl),
        max_value_size=size(max_value_size),
        max_bytes=size(max_bucket_size),
        storage=cast(Literal["file", "memory"], storage),
        replicas=replicas,
        description=description,
    )
    current().run(lambda client: jetstream_of(client).create_key_value(config))
    current().show({"bucket": bucket}, lambda: [f"Bucket {bucket} is there"])


@app.command("put")
def put(bucket: str, key: str, value: Value = "-") -> None:
    """Write a value."""
    payload = body_of(value)

    async def run(client: Client) -> None:
        revision = await (await jetstream_of(client).key_value(bucket)).put(key, payload)
        current().show({"revision": revision}, lambda: [plain(payload)])

    current().run(run)


@app.command("create")
def create(bucket: str, key: str, value: Value = "-") -> None:
    """Write a value where there is none."""
    payload = body_of(value)

    async def run(client: Client) -> None:
        revision = await (await jetstream_of(client).key_value(bucket)).create(key, payload)
        current().show({"revision": revision}, lambda: [plain(payload)])

    current().run(run)


@app.command("update")
def update(bucket: str, key: str, value: Annotated[str, Argument(help="-: read from stdin")], revision: int) -> None:
    """Write a value if REVISION is the newest."""
    payload = body_of(value)

    async def run(client: Client) -> None:
        made = await (await jetstream_of(client).key_value(bucket)).update(key, payload, revision)
        current().show({"revision": made}, lambda: [plain(payload)])

    current().run(run)


@app.command("get")
def get(
    bucket: str,
    key: str,
    revision: Annotated[int, Option("--revision")] = 0,
    raw: Annotated[bool, Option("--raw", help="the value alone, as it is")] = False,
) -> None:
    """Read a value."""

    async def run(client: Client) -> None:
        entry = await (await jetstream_of(client).key_value(bucket)).get(key, revision)
        if raw and not current().json:
            write_raw(entry.value, b"\n" if sys.stdout.isatty() else b"")
            return
        head = [f"{bucket} > {key} revision: {entry.revision} created @ {entry.created}", ""]
        current().show(_document(entry), lambda: [*head, plain(entry.value)])

    current().run(run)


@app.command("del")
@app.command("rm", hidden=True)
def delete(
    bucket: str, key: Annotated[str, Argument(help="without it, the whole bucket")] = "", force: Force = False
) -> None:
    """Delete a key, or the whole bucket."""
    confirm(f"Delete {f'key {bucket} > {key}' if key else f'bucket {bucket}'}?", force=force)

    async def run(client: Client) -> None:
        if key:
            await (await jetstream_of(client).key_value(bucket)).delete(key)
        elif not await jetstream_of(client).delete_key_value(bucket):
            raise ConfigError(f"there is no bucket {bucket!r}", value=bucket)

    current().run(run)


@app.command("purge")
def purge(bucket: str, key: str, force: Force = False) -> None:
    """Delete a key and its history."""
    confirm(f"Purge key {bucket} > {key}?", force=force)

    async def run(client: Client) -> None:
        await (await jetstream_of(client).key_value(bucket)).purge(key)

    current().run(run)


@app.command("ls")
def list_keys(bucket: Annotated[str, Argument(help="without it, all buckets")] = "") -> None:
    """The keys of a bucket, or all buckets."""

    async def run(client: Client) -> None:
        if bucket:
            keys = sorted(await (await jetstream_of(client).key_value(bucket)).keys())
            current().show(keys, lambda: keys or ["No keys found in bucket"])
            return
        found = [info for info in await jetstream_of(client).streams() if info.config.name.startswith("KV_")]
        if current().json:
            current().show([info.config.name[3:] for info in found], list)
            return
        rows = ((info.config.name[3:], info.state.messages, spell_bytes(info.state.bytes)) for info in found)
        table("Key-Value Buckets", ["Bucket", "Values", "Size"], rows)

    current().run(run)


@app.command("history")
def history(bucket: str, key: str) -> None:
    """All revisions of a key that the bucket holds."""

    async def run(client: Client) -> None:
        entries = await (await jetstream_of(client).key_value(bucket)).history(key)
        if current().json:
            current().show([_document(entry) for entry in entries], list)
            return
        rows = ((entry.key, entry.revision, entry.operation, plain(entry.value)) for entry in entries)
        table(f"History for {bucket} > {key}", ["Key", "Revision", "Op", "Value"], rows)

    current().run(run)


@app.command("revert")
def revert(bucket: str, key: str, revision: int, force: Force = False) -> None:
    """Write the value that a key had at REVISION once more."""
    confirm(f"Revert {bucket} > {key} to revision {revision}?", force=force)

    async def run(client: Client) -> None:
        store = await jetstream_of(client).key_value(bucket)
        entry = await store.get(key, revision)
        made = await store.put(key, entry.value)
        current().show({"revision": made}, lambda: [plain(entry.value)])

    current().run(run)


@app.command("info")
@app.command("status", hidden=True)
def info(bucket: str) -> None:
    """What a bucket keeps, and what it holds."""
    found = current().run(lambda client: jetstream_of(client).stream_info(f"KV_{bucket}"))
    config = found.config
    lines = [
        f"Information for Key-Value Store Bucket {bucket} created {found.created[:19].replace('T', ' ')}",
        "",
        f"       History Kept: {config.max_msgs_per_subject}",
        f"      Values Stored: {found.state.messages:,}",
        f"        Maximum Age: {f'{config.max_age:g}s' if config.max_age else 'unlimited'}",
        f"Bucket Size Maximum: {spell_limit(config.max_bytes, spell_bytes)}",
        f" Maximum Value Size: {spell_limit(config.max_msg_size, spell_bytes)}",
        f"            Storage: {config.storage}",
        f"           Replicas: {config.num_replicas}",
    ]
    current().show(found, lambda: lines)


@app.command("watch")
def watch(
    bucket: str,
    key: Annotated[str, Argument(help="a key or a pattern")] = ">",
    count: Annotated[int, Option("--count", min=0, help="end after so many; 0: never")] = 0,
) -> None:
    """Print changes as they come, the newest values first."""

    async def run(client: Client) -> None:
        number = 0
        async for entry in (await jetstream_of(client).key_value(bucket)).watch(key):
            number += 1
            if current().json:
                print(json.dumps(_document(entry)), flush=True)
            else:
                shown = f": {plain(entry.value)}" if entry.operation == "PUT" else ""
                print(f"[{entry.revision}] {entry.operation} {bucket} > {entry.key}{shown}", flush=True)
            if number == count:
                return

    current().run(run)


def _document(entry: Entry) -> dict[str, object]:
    return {
        "bucket": entry.bucket,
        "key": entry.key,
        **json_fields(entry.value, "value"),
        "revision": entry.revision,
        "operation": entry.operation,
        "created": entry.created,
    }
