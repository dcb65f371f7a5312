"""`headwater stream …` and `headwater consumer …`, with the words and options of the `nats` tool."""

import sys
from typing import Annotated, Literal, cast

import typer

from headwater.cli.nats_session import (
    HELP,
    CliSession,
    nanoseconds,
    plain,
    run_app,
    size,
    spell_bytes,
    spell_limit,
    table,
)
from headwater.client.client import Client
from headwater.client.jetstream import JetStream
from headwater.client.jetstream_types import ConsumerConfig, ConsumerInfo, StreamConfig, StreamInfo
from headwater.errors import ConfigError

stream_app = typer.Typer(help="Streams.", epilog=HELP, no_args_is_help=True, add_completion=False)
consumer_app = typer.Typer(help="Consumers of a stream.", epilog=HELP, no_args_is_help=True, add_completion=False)
Force = Annotated[bool, typer.Option("--force", "-f", help="do not ask")]

_session: list[CliSession] = []


def stream(arguments: list[str]) -> int:
    """The verb `stream`."""
    return run_app(stream_app, "stream", arguments, _bind)


def consumer(arguments: list[str]) -> int:
    """The verb `consumer`."""
    return run_app(consumer_app, "consumer", arguments, _bind)


def _bind(session: CliSession) -> None:
    _session[:] = [session]


def _js(client: Client) -> JetStream:
    return client.jetstream(timeout=_session[0].timeout, domain=_session[0].domain)


def confirm(question: str, *, force: bool) -> None:
    """Ask before something is lost; without a terminal, refuse. Raises ConfigError, click.Abort."""
    if force:
        return
    if not sys.stdin.isatty():
        raise ConfigError(f"{question} Nobody is there to say yes", hint="--force")
    typer.confirm(question, abort=True)


# ── streams ──


@stream_app.command("add")
@stream_app.command("create", hidden=True)
def add_stream(
    name: str,
    subjects: Annotated[str, typer.Option("--subjects", help="comma-separated")] = "",
    storage: Annotated[str, typer.Option("--storage", help="file or memory")] = "file",
    retention: Annotated[str, typer.Option("--retention", help="limits, interest or workqueue")] = "limits",
    discard: Annotated[str, typer.Option("--discard", help="old or new")] = "old",
    max_msgs: Annotated[int, typer.Option("--max-msgs")] = -1,
    max_bytes: Annotated[str, typer.Option("--max-bytes")] = "-1",
    max_age: Annotated[str, typer.Option("--max-age")] = "0s",
    max_msgs_per_subject: Annotated[int, typer.Option("--max-msgs-per-subject")] = -1,
    max_msg_size: Annotated[str, typer.Option("--max-msg-size")] = "-1",
    dupe_window: Annotated[str, typer.Option("--dupe-window")] = "2m",
    replicas: Annotated[int, typer.Option("--replicas")] = 1,
    description: Annotated[str, typer.Option("--description")] = "",
    allow_direct: Annotated[bool, typer.Option("--allow-direct/--no-allow-direct")] = True,
    defaults: Annotated[bool, typer.Option("--defaults", help="taken anyway; for scripts of the nats tool")] = True,
) -> None:
    """Create the stream NAME."""
    age = nanoseconds(max_age)
    config = StreamConfig(
        name=name,
        subjects=[each.strip() for each in subjects.split(",") if each.strip()] or [name],
        storage=cast(Literal["file", "memory"], storage),
        retention=cast(Literal["limits", "interest", "workqueue"], retention),
        discard=cast(Literal["old", "new"], discard),
        max_msgs=max_msgs,
        max_bytes=size(max_bytes),
        max_age=age,
        max_msgs_per_subject=max_msgs_per_subject,
        max_msg_size=size(max_msg_size),
        duplicate_window=min(nanoseconds(dupe_window), age) if age else nanoseconds(dupe_window),
        num_replicas=replicas,
        description=description,
        allow_direct=allow_direct,
    )
    info = _session[0].run(lambda client: _js(client).create_stream(config))
    _session[0].show(info, lambda: _describe_stream(info))


@stream_app.command("ls")
@stream_app.command("list", hidden=True)
def list_streams(
    subject: Annotated[str, typer.Option("--subject", help="those that capture it")] = "",
    names: Annotated[bool, typer.Option("--names", "-n")] = False,
) -> None:
    """All streams."""
    found = _session[0].run(lambda client: _js(client).streams(subject))
    if _session[0].json or names:
        listed = [info.config.name for info in found]
        _session[0].show(listed, lambda: listed)
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


@stream_app.command("info")
def stream_info(name: str) -> None:
    """Configuration and state of a stream."""
    info = _session[0].run(lambda client: _js(client).stream_info(name))
    _session[0].show(info, lambda: _describe_stream(info))


@stream_app.command("subjects")
def stream_subjects(name: str, filter: Annotated[str, typer.Argument()] = ">") -> None:
    """How many messages each subject has."""
    info = _session[0].run(lambda client: _js(client).stream_info(name, subjects=filter))
    counts = info.state.subjects or {}
    _session[0].show(counts, lambda: [f"{count:>10,}  {subject}" for subject, count in sorted(counts.items())])


@stream_app.command("rm")
@stream_app.command("delete", hidden=True)
def remove_stream(name: str, force: Force = False) -> None:
    """Delete a stream with all its messages."""
    confirm(f"Really delete Stream {name}?", force=force)
    if not _session[0].run(lambda client: _js(client).delete_stream(name)):
        raise ConfigError(f"there is no stream {name!r}", value=name)


@stream_app.command("purge")
def purge_stream(
    name: str,
    force: Force = False,
    subject: Annotated[str, typer.Option("--subject")] = "",
    seq: Annotated[int, typer.Option("--seq", help="those before it")] = 0,
    keep: Annotated[int, typer.Option("--keep", help="all but the last so many")] = 0,
) -> None:
    """Delete messages of a stream."""
    confirm(f"Really purge Stream {name}?", force=force)
    gone = _session[0].run(lambda client: _js(client).purge_stream(name, subject=subject, sequence=seq, keep=keep))
    _session[0].show({"purged": gone}, lambda: [f"Purged {gone:,} messages"])


@stream_app.command("get")
def get_message(
    name: str,
    sequence: Annotated[int, typer.Argument()] = 0,
    last_for: Annotated[str, typer.Option("--last-for", "-S", help="the last message of a subject")] = "",
) -> None:
    """One message of a stream."""
    found = _session[0].run(lambda client: _js(client).get_message(name, sequence, last_on=last_for))
    headers = [f"  {key}: {value}" for key, value in found.headers.multi_items()]
    lines = [f"Item: {name}#{found.seq} received {found.time} on Subject {found.subject}", "", *headers]
    _session[0].show(found, lambda: [*lines, *([""] if headers else []), plain(found.data)])


@stream_app.command("rmm")
def delete_message(name: str, sequence: int, force: Force = False) -> None:
    """Delete one message of a stream."""
    confirm(f"Really remove message {sequence} from Stream {name}?", force=force)
    _session[0].run(lambda client: _js(client).delete_message(name, sequence))


@stream_app.command("view")
def view_stream(
    name: str,
    limit: Annotated[int, typer.Argument(help="so many messages at most")] = 10,
    start: Annotated[int, typer.Option("--id", help="from this sequence on")] = 1,
    subject: Annotated[str, typer.Option("--subject")] = "",
) -> None:
    """The messages of a stream, from its beginning or from `--id`."""

    async def run(client: Client) -> None:
        config = ConsumerConfig(deliver_policy="by_start_sequence", opt_start_seq=start, filter_subject=subject)
        count = 0
        async for message in _js(client).ordered_consumer(name, config, stop_at_end=True):
            print(f"[{message.metadata.stream_seq}] Subject: {message.subject}")
            for key, value in message.headers.multi_items():
                print(f"  {key}: {value}")
            print(plain(message.data))
            count += 1
            if count >= limit:
                return

    _session[0].run(run)


def _describe_stream(info: StreamInfo) -> list[str]:
    config, state = info.config, info.state
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
        f"           Maximum Age: {f'{config.max_age / 1e9:g}s' if config.max_age else 'unlimited'}",
        f"      Duplicate Window: {config.duplicate_window / 1e9:g}s",
        "",
        f"              Messages: {state.messages:,}",
        f"                 Bytes: {spell_bytes(state.bytes)}",
        f"        First Sequence: {state.first_seq:,} @ {state.first_ts}",
        f"         Last Sequence: {state.last_seq:,} @ {state.last_ts}",
        f"      Active Consumers: {state.consumer_count}",
    ]


# ── consumers ──


@consumer_app.command("add")
@consumer_app.command("create", hidden=True)
def add_consumer(
    stream_name: Annotated[str, typer.Argument(metavar="STREAM")],
    name: str,
    filter: Annotated[str, typer.Option("--filter", help="a subject, or several with commas")] = "",
    deliver: Annotated[str, typer.Option("--deliver", help="all, last, new, subject, or a sequence")] = "all",
    ack: Annotated[str, typer.Option("--ack", help="explicit, all or none")] = "explicit",
    wait: Annotated[str, typer.Option("--wait", help="for an acknowledgement")] = "30s",
    max_deliver: Annotated[int, typer.Option("--max-deliver")] = -1,
    max_pending: Annotated[int, typer.Option("--max-pending")] = 1000,
    ephemeral: Annotated[bool, typer.Option("--ephemeral")] = False,
    pull: Annotated[bool, typer.Option("--pull", help="taken anyway")] = True,
    defaults: Annotated[bool, typer.Option("--defaults", help="taken anyway")] = True,
) -> None:
    """Create the pull consumer NAME of STREAM."""
    filters = [each.strip() for each in filter.split(",") if each.strip()]
    config = ConsumerConfig(
        name=name,
        durable_name="" if ephemeral else name,
        ack_policy=cast(Literal["explicit", "all", "none"], ack),
        ack_wait=nanoseconds(wait) if ack != "none" else 0,
        max_deliver=max_deliver,
        max_ack_pending=max_pending if ack != "none" else 0,
    )
    if len(filters) == 1:
        config.filter_subject = filters[0]
    elif filters:
        config.filter_subjects = filters
    if deliver.isdigit():
        config.deliver_policy, config.opt_start_seq = "by_start_sequence", int(deliver)
    elif deliver in ("all", "last", "new"):
        config.deliver_policy = cast(Literal["all", "last", "new"], deliver)
    elif deliver == "subject":
        config.deliver_policy = "last_per_subject"
    else:
        raise ConfigError(
            f"{deliver!r} is no deliver policy", value=deliver, hint="all, last, new, subject or a number"
        )
    info = _session[0].run(lambda client: _js(client).create_consumer(stream_name, config))
    _session[0].show(info, lambda: _describe_consumer(info))


@consumer_app.command("ls")
@consumer_app.command("list", hidden=True)
def list_consumers(
    stream_name: Annotated[str, typer.Argument(metavar="STREAM")],
    names: Annotated[bool, typer.Option("--names", "-n")] = False,
) -> None:
    """The consumers of STREAM."""
    found = _session[0].run(lambda client: _js(client).consumers(stream_name))
    if _session[0].json or names:
        listed = [info.name for info in found]
        _session[0].show(listed, lambda: listed)
        return
    if not found:
        print("No Consumers defined")
        return
    table(
        f"Consumers of {stream_name}",
        ["Name", "Created", "Ack Pending", "Unprocessed", "Delivered"],
        (
            (
                info.name,
                info.created[:19].replace("T", " "),
                info.num_ack_pending,
                f"{info.num_pending:,}",
                f"{info.delivered.stream_seq:,}",
            )
            for info in found
        ),
    )


@consumer_app.command("info")
def consumer_info(stream_name: Annotated[str, typer.Argument(metavar="STREAM")], name: str) -> None:
    """Configuration and position of a consumer."""
    info = _session[0].run(lambda client: _js(client).consumer_info(stream_name, name))
    _session[0].show(info, lambda: _describe_consumer(info))


@consumer_app.command("rm")
@consumer_app.command("delete", hidden=True)
def remove_consumer(
    stream_name: Annotated[str, typer.Argument(metavar="STREAM")], name: str, force: Force = False
) -> None:
    """Delete a consumer."""
    confirm(f"Really delete Consumer {stream_name} > {name}?", force=force)
    if not _session[0].run(lambda client: _js(client).delete_consumer(stream_name, name)):
        raise ConfigError(f"there is no consumer {stream_name} > {name}", value=name)


@consumer_app.command("next")
def next_messages(
    stream_name: Annotated[str, typer.Argument(metavar="STREAM")],
    name: str,
    count: Annotated[int, typer.Option("--count", min=1)] = 1,
    ack: Annotated[bool, typer.Option("--ack/--no-ack")] = True,
    raw: Annotated[bool, typer.Option("--raw", "-r", help="payloads only")] = False,
) -> None:
    """Take the next messages of a consumer, and acknowledge them."""
    session = _session[0]

    async def run(client: Client) -> None:
        for message in await _js(client).pull_consumer(stream_name, name).fetch(count, timeout=session.timeout):
            where = message.metadata
            if not raw:
                print(f"--- subject: {message.subject} / delivered: {where.delivered} / stream seq: {where.stream_seq}")
                for key, value in message.headers.multi_items():
                    print(f"  {key}: {value}")
            print(plain(message.data))
            if ack:
                await message.ack(confirm=session.timeout)

    session.run(run)


def _describe_consumer(info: ConsumerInfo) -> list[str]:
    config = info.config
    filters = config.filter_subjects or ([config.filter_subject] if config.filter_subject else ["everything"])
    return [
        f"Information for Consumer {info.stream_name} > {info.name} created {info.created[:19].replace('T', ' ')}",
        "",
        f"                  Name: {info.name}{'' if config.durable_name else ' (ephemeral)'}",
        f"       Filter Subjects: {', '.join(filters)}",
        f"        Deliver Policy: {config.deliver_policy}",
        f"            Ack Policy: {config.ack_policy}",
        f"              Ack Wait: {config.ack_wait / 1e9:g}s",
        "",
        f"        Last Delivered: stream {info.delivered.stream_seq:,}, consumer {info.delivered.consumer_seq:,}",
        f"  Acknowledgment Floor: stream {info.ack_floor.stream_seq:,}, consumer {info.ack_floor.consumer_seq:,}",
        f"      Outstanding Acks: {info.num_ack_pending}",
        f"  Redelivered Messages: {info.num_redelivered}",
        f"  Unprocessed Messages: {info.num_pending:,}",
    ]
