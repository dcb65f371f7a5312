"""`headwater stream …`, with the terms and options of the `nats` tool."""

import json
import time
from typing import Annotated, Any, Literal, cast

import msgspec

from headwater.cli.commands import Argument, Commands, Option
from headwater.cli.nats_backup import backup_stream, restore_backup
from headwater.cli.nats_options import DISCARDS, RETENTIONS, Force, Storage
from headwater.cli.nats_session import (
    confirm,
    confirm_changes,
    current,
    jetstream_of,
    read_document,
    run_app,
    seconds,
    size,
    spell_bytes,
    spell_limit,
    table,
)
from headwater.cli.payloads import header_lines, message_fields, plain
from headwater.client.client import Client
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig, StreamInfo, StreamSource
from headwater.errors import ConfigError
from headwater.model.timestamps import parse_time

stream_app = Commands("Streams.")


def stream(arguments: list[str]) -> int:
    """The verb `stream`."""
    return run_app(stream_app, "stream", arguments)


stream_app.command("backup")(backup_stream)
stream_app.command("restore")(restore_backup)


# ── streams ──


@stream_app.command("add")
@stream_app.command("create", hidden=True)
def add_stream(
    name: str,
    subjects: Annotated[str, Option("--subjects", help="comma-separated")] = "",
    storage: Storage = "file",
    retention: Annotated[
        str, Option("--retention", help="limits, interest or workqueue", choices=RETENTIONS)
    ] = "limits",
    discard: Annotated[str, Option("--discard", help="old or new", choices=DISCARDS)] = "old",
    max_msgs: Annotated[
        int, Option("--max-msgs", help="messages; the oldest leave, or new ones are refused; -1: any number")
    ] = -1,
    max_bytes: Annotated[str, Option("--max-bytes", help="such as 10GB; -1: no limit")] = "-1",
    max_age: Annotated[str, Option("--max-age", help="such as 24h or 7d; 0s: no limit")] = "0s",
    max_msgs_per_subject: Annotated[
        int, Option("--max-msgs-per-subject", help="messages of one subject; -1: any number")
    ] = -1,
    max_msg_size: Annotated[
        str, Option("--max-msg-size", help="of one message, such as 64KB; -1: the limit of the server")
    ] = "-1",
    dupe_window: Annotated[str, Option("--dupe-window", help="how long a message id is stored once")] = "2m",
    replicas: Annotated[int, Option("--replicas", help="1 here; up to 5 in a cluster of nats-servers")] = 1,
    description: Annotated[str, Option("--description", help="for people")] = "",
    allow_direct: Annotated[
        bool, Option("--allow-direct/--no-allow-direct", help="whether direct gets are answered")
    ] = True,
    defaults: Annotated[bool, Option("--defaults", help="taken anyway; for scripts of the nats tool")] = True,
    mirror: Annotated[str, Option("--mirror", help="copy this stream, with its sequences")] = "",
    source: Annotated[list[str], Option("--source", help="copy this stream among others")] = [],  # noqa: B006 - read only
) -> None:
    """Create the stream NAME."""
    age = seconds(max_age)
    own = [each.strip() for each in subjects.split(",") if each.strip()]
    config = StreamConfig(
        name=name,
        subjects=own or ([] if mirror or source else [name]),
        mirror=StreamSource(name=mirror) if mirror else None,
        sources=[StreamSource(name=each) for each in source] or None,
        storage=cast(Literal["file", "memory"], storage),
        retention=cast(Literal["limits", "interest", "workqueue"], retention),
        discard=cast(Literal["old", "new"], discard),
        max_msgs=max_msgs,
        max_bytes=size(max_bytes),
        max_age=age,
        max_msgs_per_subject=max_msgs_per_subject,
        max_msg_size=size(max_msg_size),
        duplicate_window=min(seconds(dupe_window), age) if age else seconds(dupe_window),
        num_replicas=replicas,
        description=description,
        allow_direct=allow_direct,
    )
    info = current().run(lambda client: jetstream_of(client).create_stream(config))
    current().show(info, lambda: _describe_stream(info))


@stream_app.command("edit")
@stream_app.command("update", hidden=True)
def edit_stream(
    name: str,
    config: Annotated[str, Option("--config", help="a JSON file with the whole configuration")] = "",
    subjects: Annotated[str | None, Option("--subjects", help="comma-separated")] = None,
    discard: Annotated[str | None, Option("--discard", help="old or new", choices=DISCARDS)] = None,
    max_msgs: Annotated[int | None, Option("--max-msgs")] = None,
    max_bytes: Annotated[str | None, Option("--max-bytes")] = None,
    max_age: Annotated[str | None, Option("--max-age")] = None,
    max_msgs_per_subject: Annotated[int | None, Option("--max-msgs-per-subject")] = None,
    max_msg_size: Annotated[str | None, Option("--max-msg-size")] = None,
    dupe_window: Annotated[str | None, Option("--dupe-window")] = None,
    replicas: Annotated[int | None, Option("--replicas")] = None,
    description: Annotated[str | None, Option("--description")] = None,
    allow_direct: Annotated[bool | None, Option("--allow-direct/--no-allow-direct")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="only say what would change")] = False,
    force: Force = False,
) -> None:
    """Change the configuration of a stream; what is not named stays."""
    before = current().run(lambda client: jetstream_of(client).stream_info(name)).config
    changes: dict[str, object] = {
        "subjects": None if subjects is None else [each.strip() for each in subjects.split(",") if each.strip()],
        "discard": discard,
        "max_msgs": max_msgs,
        "max_bytes": None if max_bytes is None else size(max_bytes),
        "max_age": None if max_age is None else seconds(max_age),
        "max_msgs_per_subject": max_msgs_per_subject,
        "max_msg_size": None if max_msg_size is None else size(max_msg_size),
        "duplicate_window": None if dupe_window is None else seconds(dupe_window),
        "num_replicas": replicas,
        "description": description,
        "allow_direct": allow_direct,
    }
    wanted = msgspec.structs.replace(
        read_document(config, StreamConfig) if config else before,
        name=name,
        **{key: value for key, value in changes.items() if value is not None},
    )
    _change_stream(before, wanted, dry_run=dry_run, force=force)


def _change_stream(before: StreamConfig, wanted: StreamConfig, *, dry_run: bool, force: bool) -> None:
    if not confirm_changes(before, wanted, f"Really edit Stream {wanted.name}?", dry_run=dry_run, force=force):
        return
    info = current().run(lambda client: jetstream_of(client).update_stream(wanted))
    current().show(info, lambda: ["", *_describe_stream(info)])


@stream_app.command("copy")
@stream_app.command("cp", hidden=True)
def copy_stream(
    source: str,
    name: str,
    subjects: Annotated[str, Option("--subjects", help="comma-separated; two streams cannot share one")] = "",
    description: Annotated[str, Option("--description")] = "",
) -> None:
    """Create the stream NAME with the configuration of SOURCE; its messages are not copied."""

    async def run(client: Client) -> StreamInfo:
        config = (await jetstream_of(client).stream_info(source)).config
        named = [each.strip() for each in subjects.split(",") if each.strip()] or [name]
        made = msgspec.structs.replace(
            config, name=name, subjects=named, description=description or config.description, sealed=False
        )
        return await jetstream_of(client).create_stream(made)

    info = current().run(run)
    current().show(info, lambda: _describe_stream(info))


@stream_app.command("seal")
def seal_stream(name: str, force: Force = False) -> None:
    """Let nothing be written to a stream or deleted from it any more; this cannot be taken back."""
    confirm(f"Really seal Stream {name}, sealed streams can not be unsealed or modified?", force=force)

    async def run(client: Client) -> StreamInfo:
        config = (await jetstream_of(client).stream_info(name)).config
        return await jetstream_of(client).update_stream(msgspec.structs.replace(config, sealed=True))

    info = current().run(run)
    current().show(info, lambda: [f"Stream {name} is sealed"])


@stream_app.command("state")
def stream_state(name: str) -> None:
    """How many messages a stream holds, and from where to where."""
    info = current().run(lambda client: jetstream_of(client).stream_info(name))
    current().show(info.state, lambda: [f"State for Stream {name}", "", *_describe_state(info)])


@stream_app.command("report")
def report_streams(subject: Annotated[str, Option("--subject", help="those that capture it")] = "") -> None:
    """All streams in one table, the largest first."""
    found = sorted(
        current().run(lambda client: jetstream_of(client).streams(subject)), key=lambda info: -info.state.bytes
    )
    if current().json:
        current().show(found, list)
        return
    table(
        "Stream Report",
        ["Stream", "Storage", "Placement", "Consumers", "Messages", "Bytes", "Deleted"],
        (
            (
                info.config.name,
                info.config.storage.title(),
                (info.config.placement.cluster if info.config.placement else "") or "",
                info.state.consumer_count,
                f"{info.state.messages:,}",
                spell_bytes(info.state.bytes),
                info.state.num_deleted,
            )
            for info in found
        ),
    )


@stream_app.command("ls")
@stream_app.command("list", hidden=True)
def list_streams(
    subject: Annotated[str, Option("--subject", help="those that capture it")] = "",
    names: Annotated[bool, Option("--names", "-n")] = False,
) -> None:
    """All streams."""
    found = current().run(lambda client: jetstream_of(client).streams(subject))
    if current().json or names:
        listed = [info.config.name for info in found]
        current().show(listed, lambda: listed)
        return
    if not found:
        print("No Streams defined")
        return
    table(
        "Streams",
        ["Name", "Description", "Created", "Messages", "Size", "Last Message"],
        (
            (
                info.config.name,
                info.config.description,
                info.created[:19].replace("T", " "),
                f"{info.state.messages:,}",
                spell_bytes(info.state.bytes),
                info.state.last_ts[:19].replace("T", " ") if info.state.messages else "never",
            )
            for info in found
        ),
    )


@stream_app.command("find")
def find_streams(
    subject: Annotated[str, Option("--subject", help="those that capture it")] = "",
    empty: Annotated[bool, Option("--empty", help="those without a message")] = False,
    idle: Annotated[str, Option("--idle", help="those without a new message for so long")] = "",
    consumers: Annotated[int, Option("--consumers", help="those with at least so many consumers")] = 0,
    mirrored: Annotated[bool, Option("--mirrored", help="those that are mirrors")] = False,
    sourced: Annotated[bool, Option("--sourced", help="those that have sources")] = False,
) -> None:
    """The names of streams that are all of what the options say."""
    since = time.time_ns() - int(seconds(idle) * 1e9) if idle else 0

    def fits(info: StreamInfo) -> bool:
        state, config = info.state, info.config
        return (
            (not empty or not state.messages)
            and (not idle or not state.messages or parse_time(state.last_ts) < since)
            and state.consumer_count >= consumers
            and (not mirrored or config.mirror is not None)
            and (not sourced or bool(config.sources))
        )

    infos = current().run(lambda client: jetstream_of(client).streams(subject))
    found = [info.config.name for info in infos if fits(info)]
    current().show(found, lambda: found)


@stream_app.command("info")
def stream_info(name: str) -> None:
    """Configuration and state of a stream; with --json as the server has them."""
    if current().json:
        answer = current().run(lambda client: jetstream_of(client).ask(f"STREAM.INFO.{name}", None, dict[str, Any]))
        current().show(answer, list)
        return
    info = current().run(lambda client: jetstream_of(client).stream_info(name))
    current().show(info, lambda: _describe_stream(info))


@stream_app.command("subjects")
def stream_subjects(name: str, filter: Annotated[str, Argument()] = ">") -> None:
    """How many messages each subject has."""
    info = current().run(lambda client: jetstream_of(client).stream_info(name, subjects=filter))
    counts = info.state.subjects or {}
    current().show(counts, lambda: [f"{count:>10,}  {subject}" for subject, count in sorted(counts.items())])


@stream_app.command("rm")
@stream_app.command("delete", hidden=True)
def remove_stream(name: str, force: Force = False) -> None:
    """Delete a stream with all its messages."""
    confirm(f"Really delete Stream {name}?", force=force)
    if not current().run(lambda client: jetstream_of(client).delete_stream(name)):
        raise ConfigError(f"there is no stream {name!r}", value=name)


@stream_app.command("purge")
def purge_stream(
    name: str,
    force: Force = False,
    subject: Annotated[str, Option("--subject")] = "",
    seq: Annotated[int, Option("--seq", help="those before it")] = 0,
    keep: Annotated[int, Option("--keep", help="all but the last so many")] = 0,
) -> None:
    """Delete messages of a stream."""
    confirm(f"Really purge Stream {name}?", force=force)
    gone = current().run(
        lambda client: jetstream_of(client).purge_stream(name, subject=subject, sequence=seq, keep=keep)
    )
    current().show({"purged": gone}, lambda: [f"Purged {gone:,} messages"])


@stream_app.command("get")
def get_message(
    name: str,
    sequence: Annotated[int, Argument()] = 0,
    last_for: Annotated[str, Option("--last-for", "-S", help="the last message of a subject")] = "",
) -> None:
    """One message of a stream."""
    if not sequence and not last_for:
        raise ConfigError("which message of the stream?", hint="its sequence, or --last-for SUBJECT")
    found = current().run(lambda client: jetstream_of(client).get_message(name, sequence, last_on=last_for))
    headers = [f"  {line}" for line in header_lines(found.hdrs)]
    lines = [f"Item: {name}#{found.seq} received {found.time} on Subject {found.subject}", "", *headers]
    current().show(found, lambda: [*lines, *([""] if headers else []), plain(found.data)])


@stream_app.command("rmm")
def delete_message(name: str, sequence: int, force: Force = False) -> None:
    """Delete one message of a stream."""
    confirm(f"Really remove message {sequence} from Stream {name}?", force=force)
    current().run(lambda client: jetstream_of(client).delete_message(name, sequence))


@stream_app.command("view")
def view_stream(
    name: str,
    limit: Annotated[int, Argument(help="so many messages at most")] = 10,
    start: Annotated[int, Option("--id", help="from this sequence on")] = 1,
    subject: Annotated[str, Option("--subject")] = "",
) -> None:
    """The messages of a stream, from its beginning or from `--id`."""

    async def run(client: Client) -> None:
        config = ConsumerConfig(deliver_policy="by_start_sequence", opt_start_seq=start, filter_subject=subject)
        count = 0
        async for message in jetstream_of(client).ordered_consumer(name, config, stop_at_end=True):
            sequence = message.metadata.stream_seq
            if current().json:
                print(json.dumps({"seq": sequence, **message_fields(message.message)}))
            else:
                print(f"[{sequence}] Subject: {message.subject}")
                for line in header_lines(message.message.header_block):
                    print(f"  {line}")
                print(plain(message.data))
            count += 1
            if count >= limit:
                return

    current().run(run)


def _describe_stream(info: StreamInfo) -> list[str]:
    config = info.config
    return [
        f"Information for Stream {config.name} created {info.created[:19].replace('T', ' ')}",
        "",
        f"              Subjects: {', '.join(config.subjects)}",
        f"              Replicas: {config.num_replicas}",
        f"               Storage: {config.storage}",
        f"             Retention: {config.retention}",
        f"        Discard Policy: {config.discard}",
        f"      Maximum Messages: {spell_limit(config.max_msgs)}",
        f"   Maximum Per Subject: {spell_limit(config.max_msgs_per_subject)}",
        f"         Maximum Bytes: {spell_limit(config.max_bytes, spell_bytes)}",
        f"           Maximum Age: {f'{config.max_age:g}s' if config.max_age else 'unlimited'}",
        f"      Duplicate Window: {config.duplicate_window:g}s",
        "",
        *_describe_state(info),
    ]


def _describe_state(info: StreamInfo) -> list[str]:
    state = info.state
    return [
        f"              Messages: {state.messages:,}",
        f"                 Bytes: {spell_bytes(state.bytes)}",
        f"        First Sequence: {state.first_seq:,}{_at(state.first_ts)}",
        f"         Last Sequence: {state.last_seq:,}{_at(state.last_ts)}",
        f"      Active Consumers: {state.consumer_count}",
    ]


def _at(time: str) -> str:
    return "" if time.startswith("0001-") else f" @ {time}"  # Go's zero time: there is no message
