"""`headwater consumer …`, with the terms and options of the `nats` tool."""

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, cast

import msgspec

from headwater.cli.commands import Argument, Commands, Option
from headwater.cli.nats_options import Force, words
from headwater.cli.nats_session import (
    confirm,
    confirm_changes,
    current,
    jetstream_of,
    run_app,
    seconds,
    table,
)
from headwater.cli.payloads import header_lines, message_fields, plain, write_raw
from headwater.client.client import Client
from headwater.client.jetstream_types import ConsumerConfig, ConsumerInfo
from headwater.client.stream_message import StreamMessage
from headwater.errors import ConfigError, RequestTimeout

consumer_app = Commands("Consumers of a stream.")
StreamName = Annotated[str, Argument(metavar="STREAM")]


def consumer(arguments: list[str]) -> int:
    """The verb `consumer`."""
    return run_app(consumer_app, "consumer", arguments)


Priority = Annotated[
    str,
    Option(
        "--priority",
        help="of its groups: overflow, pinned_client or prioritized",
        choices=words("overflow", "pinned_client", "prioritized"),
    ),
]
PriorityGroups = Annotated[str, Option("--priority-groups", help="their names, with commas")]
PinFor = Annotated[str, Option("--pinned-ttl", help="how long a pinned client that is silent stays so")]


def _prioritize(config: ConsumerConfig, policy: str, groups: str, pin_for: str) -> None:
    """Set the priority options of a consumer. Raises ConfigError when they contradict each other."""
    names = [each.strip() for each in groups.split(",") if each.strip()]
    if bool(policy) != bool(names):
        raise ConfigError("--priority and --priority-groups go together")
    if pin_for and policy != "pinned_client":
        raise ConfigError("--pinned-ttl is for --priority=pinned_client")
    if policy:
        config.priority_policy, config.priority_groups = policy, names
        if pin_for:
            config.priority_timeout = seconds(pin_for)


@consumer_app.command("add")
@consumer_app.command("create", hidden=True)
def add_consumer(
    stream_name: StreamName,
    name: str,
    filter: Annotated[str, Option("--filter", help="a subject, or several with commas")] = "",
    deliver: Annotated[str, Option("--deliver", help="all, last, new, subject, or a sequence")] = "all",
    ack: Annotated[
        str, Option("--ack", help="explicit, all or none", choices=words("explicit", "all", "none"))
    ] = "explicit",
    wait: Annotated[str, Option("--wait", help="for an acknowledgement")] = "30s",
    max_deliver: Annotated[int, Option("--max-deliver")] = -1,
    max_pending: Annotated[int, Option("--max-pending")] = 1000,
    ephemeral: Annotated[bool, Option("--ephemeral")] = False,
    priority: Priority = "",
    groups: PriorityGroups = "",
    pin_for: PinFor = "",
    pull: Annotated[bool, Option("--pull", help="taken anyway")] = True,
    defaults: Annotated[bool, Option("--defaults", help="taken anyway")] = True,
) -> None:
    """Create the pull consumer NAME of STREAM."""
    filters = [each.strip() for each in filter.split(",") if each.strip()]
    config = ConsumerConfig(
        name=name,
        durable_name="" if ephemeral else name,
        ack_policy=cast(Literal["explicit", "all", "none"], ack),
        ack_wait=seconds(wait) if ack != "none" else 0,
        max_deliver=max_deliver,
        max_ack_pending=max_pending if ack != "none" else 0,
    )
    _prioritize(config, priority, groups, pin_for)
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
    info = current().run(lambda client: jetstream_of(client).create_consumer(stream_name, config))
    current().show(info, lambda: _describe_consumer(info))


@consumer_app.command("edit")
@consumer_app.command("update", hidden=True)
def edit_consumer(
    stream_name: StreamName,
    name: str,
    filter: Annotated[str | None, Option("--filter", help="a subject, or several with commas")] = None,
    wait: Annotated[str | None, Option("--wait", help="for an acknowledgement")] = None,
    max_deliver: Annotated[int | None, Option("--max-deliver")] = None,
    max_pending: Annotated[int | None, Option("--max-pending")] = None,
    description: Annotated[str | None, Option("--description")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="only say what would change")] = False,
    force: Force = False,
) -> None:
    """Change the configuration of a consumer; what is not named stays."""
    before = current().run(lambda client: jetstream_of(client).consumer_info(stream_name, name)).config
    given: dict[str, object] = {
        "ack_wait": None if wait is None else seconds(wait),
        "max_deliver": max_deliver,
        "max_ack_pending": max_pending,
        "description": description,
    }
    if filter is not None:
        filters = [each.strip() for each in filter.split(",") if each.strip()]
        given["filter_subject"] = filters[0] if len(filters) == 1 else ""
        given["filter_subjects"] = filters if len(filters) > 1 else None
    kept = {key: value for key, value in given.items() if value is not None or key == "filter_subjects"}
    wanted = msgspec.structs.replace(before, **kept)
    question = f"Really edit Consumer {stream_name} > {name}?"
    if not confirm_changes(before, wanted, question, dry_run=dry_run, force=force):
        return
    info = current().run(lambda client: jetstream_of(client).update_consumer(stream_name, wanted))
    current().show(info, lambda: ["", *_describe_consumer(info)])


@consumer_app.command("copy")
@consumer_app.command("cp", hidden=True)
def copy_consumer(stream_name: StreamName, source: str, name: str) -> None:
    """Create the consumer NAME with the configuration of SOURCE, on the same stream."""

    async def run(client: Client) -> ConsumerInfo:
        config = (await jetstream_of(client).consumer_info(stream_name, source)).config
        durable = name if config.durable_name else ""
        return await jetstream_of(client).create_consumer(
            stream_name, msgspec.structs.replace(config, name=name, durable_name=durable)
        )

    info = current().run(run)
    current().show(info, lambda: _describe_consumer(info))


@consumer_app.command("pause")
def pause(
    stream_name: StreamName,
    name: str,
    until: Annotated[str, Argument(help="a duration such as 1h, or an RFC 3339 time")],
    force: Force = False,
) -> None:
    """Deliver nothing to a consumer for a while."""
    when = until
    if "T" not in until:
        when = (datetime.now(UTC) + timedelta(seconds=seconds(until))).isoformat()
    confirm(f"Really pause Consumer {stream_name} > {name} until {when}?", force=force)
    paused = current().run(lambda client: jetstream_of(client).pause_consumer(stream_name, name, when))
    current().show(
        {"paused": paused, "pause_until": when}, lambda: [f"Paused until {when}" if paused else "Not paused"]
    )


@consumer_app.command("resume")
def resume(stream_name: StreamName, name: str, force: Force = False) -> None:
    """Deliver to a paused consumer again."""
    confirm(f"Really resume Consumer {stream_name} > {name}?", force=force)
    paused = current().run(lambda client: jetstream_of(client).pause_consumer(stream_name, name, ""))
    current().show({"paused": paused}, lambda: [f"Consumer {stream_name} > {name} {'waits' if paused else 'goes on'}"])


@consumer_app.command("ls")
@consumer_app.command("list", hidden=True)
def list_consumers(
    stream_name: StreamName,
    names: Annotated[bool, Option("--names", "-n")] = False,
) -> None:
    """The consumers of STREAM."""
    found = current().run(lambda client: jetstream_of(client).consumers(stream_name))
    if current().json or names:
        listed = [info.name for info in found]
        current().show(listed, lambda: listed)
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


@consumer_app.command("report")
def report_consumers(stream: str) -> None:
    """All consumers of a stream in one table, the furthest behind first."""
    infos = current().run(lambda client: jetstream_of(client).consumers(stream))
    found = sorted(infos, key=lambda info: -info.num_pending)
    if current().json:
        current().show(found, list)
        return
    rows = (
        (
            info.name,
            "push" if info.config.deliver_subject else "pull",
            info.config.ack_policy,
            f"{info.num_ack_pending:,}",
            f"{info.num_redelivered:,}",
            f"{info.num_pending:,}",
            f"{info.ack_floor.stream_seq:,}",
            f"{info.num_waiting:,}",
        )
        for info in found
    )
    headings = ["Consumer", "Mode", "Ack Policy", "Ack Pending", "Redelivered", "Unprocessed", "Ack Floor", "Waiting"]
    table(f"Consumer Report for {stream}", headings, rows)


@consumer_app.command("info")
def consumer_info(stream_name: StreamName, name: str) -> None:
    """Configuration and position of a consumer."""
    info = current().run(lambda client: jetstream_of(client).consumer_info(stream_name, name))
    current().show(info, lambda: _describe_consumer(info))


@consumer_app.command("rm")
@consumer_app.command("delete", hidden=True)
def remove_consumer(stream_name: StreamName, name: str, force: Force = False) -> None:
    """Delete a consumer."""
    confirm(f"Really delete Consumer {stream_name} > {name}?", force=force)
    if not current().run(lambda client: jetstream_of(client).delete_consumer(stream_name, name)):
        raise ConfigError(f"there is no consumer {stream_name} > {name}", value=name)


@consumer_app.command("sub")
def subscribe(
    stream_name: StreamName,
    name: str,
    count: Annotated[int, Option("--count", min=0, help="end after so many; 0: never")] = 0,
    ack: Annotated[bool, Option("--ack/--no-ack")] = True,
    raw: Annotated[bool, Option("--raw", "-r", help="payloads only")] = False,
) -> None:
    """Print the messages of a consumer as they come, and acknowledge them."""

    async def run(client: Client) -> None:
        number = 0
        async with jetstream_of(client).pull_consumer(stream_name, name).consume() as messages:
            async for message in messages:
                _print(message, raw=raw)
                if ack:
                    await message.ack()
                number += 1
                if number == count:
                    return

    current().run(run)


@consumer_app.command("next")
def next_messages(
    stream_name: StreamName,
    name: str,
    count: Annotated[int, Option("--count", min=1)] = 1,
    ack: Annotated[bool, Option("--ack/--no-ack")] = True,
    raw: Annotated[bool, Option("--raw", "-r", help="payloads only")] = False,
) -> None:
    """Take the next messages of a consumer, and acknowledge them."""
    session = current()

    async def run(client: Client) -> None:
        found = await jetstream_of(client).pull_consumer(stream_name, name).fetch(count, timeout=session.timeout)
        if not found:
            raise RequestTimeout(f"no message for {stream_name} > {name} within {session.timeout:g} s")
        for message in found:
            _print(message, raw=raw)
            if ack:
                await message.ack(confirm=session.timeout)

    session.run(run)


def _print(message: StreamMessage, *, raw: bool) -> None:
    where = message.metadata
    if current().json:
        place = {"stream": where.stream, "seq": where.stream_seq, "delivered": where.delivered}
        print(json.dumps({**place, **message_fields(message.message)}), flush=True)
        return
    if raw:
        write_raw(message.data)
    else:
        print(f"--- subject: {message.subject} / delivered: {where.delivered} / stream seq: {where.stream_seq}")
        for line in header_lines(message.message.header_block):
            print(f"  {line}")
        print(plain(message.data), flush=True)


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
        f"              Ack Wait: {config.ack_wait:g}s",
        "",
        f"        Last Delivered: stream {info.delivered.stream_seq:,}, consumer {info.delivered.consumer_seq:,}",
        f"  Acknowledgment Floor: stream {info.ack_floor.stream_seq:,}, consumer {info.ack_floor.consumer_seq:,}",
        f"      Outstanding Acks: {info.num_ack_pending}",
        f"  Redelivered Messages: {info.num_redelivered}",
        f"  Unprocessed Messages: {info.num_pending:,}",
    ]
