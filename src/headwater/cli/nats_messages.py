"""`headwater pub|sub|request|reply`: messages from the command line, with the terms and options of the `nats` tool.

Data goes to stdout, other messages to stderr. A body may contain `{{Count}}`, `{{ID}}`, `{{Time}}` and `{{Request}}`.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from headwater.cli.commands import Argument, Commands, Option
from headwater.cli.nats_session import current, headers_from, jetstream_of, run_app, seconds
from headwater.cli.payloads import body_of, header_lines, message_fields, plain, write_raw
from headwater.client.client import Client
from headwater.errors import HeaderError, NoResponders
from headwater.model.message import Message

if TYPE_CHECKING:
    from headwater.client.jetstream_types import DeliverPolicy
    from headwater.model.headers import Headers as MessageHeaders

Headers = Annotated[list[str], Option("-H", "--header", help="Name:value, as often as you like")]


pub_app, sub_app, request_app, reply_app, rtt_app = (
    Commands(name) for name in ("pub", "sub", "request", "reply", "rtt")
)


def pub(arguments: list[str]) -> int:
    """The verb `pub`."""
    return run_app(pub_app, "pub", arguments)


def sub(arguments: list[str]) -> int:
    """The verb `sub`."""
    return run_app(sub_app, "sub", arguments)


def request(arguments: list[str]) -> int:
    """The verb `request`."""
    return run_app(request_app, "request", arguments)


def reply(arguments: list[str]) -> int:
    """The verb `reply`."""
    return run_app(reply_app, "reply", arguments)


def rtt(arguments: list[str]) -> int:
    """The verb `rtt`."""
    return run_app(rtt_app, "rtt", arguments)


def _fill(body: bytes, number: int, request: bytes = b"") -> bytes:
    """The body with its placeholders replaced."""
    if b"{{" not in body:
        return body
    filled = body.replace(b"{{Count}}", b"%d" % number).replace(b"{{ID}}", os.urandom(11).hex().encode())
    return filled.replace(b"{{Time}}", datetime.now(UTC).isoformat().encode()).replace(b"{{Request}}", request)


@pub_app.command()
def publish(
    subject: str,
    body: Annotated[str, Argument(help="- or nothing: read from stdin")] = "-",
    headers: Headers = [],  # noqa: B006 - read only
    reply_to: Annotated[str, Option("--reply")] = "",
    count: Annotated[int, Option("--count", min=1)] = 1,
    sleep: Annotated[str, Option("--sleep", help="between messages, such as 100ms")] = "0s",
    jetstream: Annotated[bool, Option("--jetstream", "-J", help="wait for the stream's acknowledgement")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q")] = False,
) -> None:
    """Publish BODY to SUBJECT."""
    session = current()
    payload = body_of(body)
    pairs = headers_from(headers)
    pause = seconds(sleep)

    async def run(client: Client) -> None:
        stream = client.jetstream(timeout=session.timeout, prefix=session.api_prefix) if jetstream else None
        numbers: Iterable[int] = range(1, count + 1)
        if count >= 1000 and not quiet:
            from rich.console import Console
            from rich.progress import track

            numbers = track(numbers, "publishing", console=Console(stderr=True))
        for number in numbers:
            data = _fill(payload, number)
            if stream is not None:
                ack = await stream.publish(subject, data, headers=pairs)
                if session.json:
                    print(json.dumps({"stream": ack.stream, "seq": ack.seq, "duplicate": ack.duplicate}), flush=True)
                elif not quiet:
                    print(f"Stored in Stream: {ack.stream} Sequence: {ack.seq}{' Duplicate' if ack.duplicate else ''}")
            else:
                await client.publish(subject, data, headers=pairs, reply=reply_to)
            if pause and number < count:
                await asyncio.sleep(pause)
        await client.flush(session.timeout)
        if not quiet and not jetstream:
            print(f"Published {count} message{'s' if count > 1 else ''} to {subject!r}", file=sys.stderr)

    session.run(run)


@sub_app.command()
def subscribe(
    subject: str,
    queue: Annotated[str, Option("--queue")] = "",
    count: Annotated[int, Option("--count", min=0, help="end after so many; 0: never")] = 0,
    raw: Annotated[bool, Option("--raw", "-r", help="payloads only")] = False,
    headers_only: Annotated[bool, Option("--headers-only")] = False,
    stream: Annotated[str, Option("--stream", help="what this stream holds on SUBJECT, then what comes")] = "",
    last: Annotated[bool, Option("--last", help="of a stream: from the last message on")] = False,
    new: Annotated[bool, Option("--new", help="of a stream: only what comes from now on")] = False,
) -> None:
    """Print what comes on SUBJECT, which may hold wildcards. With --stream, --last or --new it is read from the stream that
    captures it."""
    session = current()
    if stream or last or new:
        policy: DeliverPolicy = "last" if last else "new" if new else "all"
        session.run(lambda client: _read_stream(client, stream, subject, policy, count, raw=raw, bare=headers_only))
        return

    async def run(client: Client) -> None:
        session.replays = False
        subscription = await client.subscribe(subject, queue=queue, max_messages=count)
        await client.flush(session.timeout)
        print(f"Subscribing on {subject}", file=sys.stderr, flush=True)
        number = 0
        async for message in subscription:
            number += 1
            _print(message, number, raw=raw, headers_only=headers_only, as_json=session.json)

    session.run(run)


async def _read_stream(
    client: Client, name: str, subject: str, policy: "DeliverPolicy", count: int, *, raw: bool, bare: bool
) -> None:
    from headwater.client.jetstream_types import ConsumerConfig  # here: `pub` needs none of its types

    jetstream = jetstream_of(client)
    stream = name or await jetstream.find_stream(subject)
    config = ConsumerConfig(deliver_policy=policy, filter_subject=subject)
    print(f"Subscribing to {subject} of stream {stream}", file=sys.stderr, flush=True)
    number = 0
    async for message in jetstream.ordered_consumer(stream, config):
        number += 1
        _print(message.message, number, raw=raw, headers_only=bare, as_json=current().json)
        if number == count:
            return


def _print(message: Message, number: int, *, raw: bool, headers_only: bool, as_json: bool) -> None:
    if as_json:
        print(json.dumps(message_fields(message)), flush=True)
        return
    if raw:
        write_raw(message.data)
        return
    answer = f" with reply {message.reply!r}" if message.reply else ""
    print(f"[#{number}] Received on {message.subject!r}{answer}")
    for line in header_lines(message.header_block):
        print(line)
    if message.header_block and not headers_only:
        print()
    if not headers_only:
        print(plain(message.data))
    print(flush=True)


@request_app.command()
def ask(
    subject: str,
    body: Annotated[str, Argument(help="- or nothing: read from stdin")] = "-",
    headers: Headers = [],  # noqa: B006 - read only
    count: Annotated[int, Option("--count", min=1)] = 1,
    replies: Annotated[int, Option("--replies", min=0, help="wait for so many; 0: as many as come in time")] = 1,
    raw: Annotated[bool, Option("--raw", "-r", help="payloads only")] = False,
) -> None:
    """Ask on SUBJECT and print the answers."""
    session = current()
    payload = body_of(body)
    pairs = headers_from(headers)

    async def run(client: Client) -> int:
        for number in range(1, count + 1):
            began = time.perf_counter()
            if replies == 1:
                answers = [
                    await client.request(subject, _fill(payload, number), headers=pairs, timeout=session.timeout)
                ]
            else:
                answers = await _many(client, subject, _fill(payload, number), pairs, replies, session.timeout)
            for one, answer in enumerate(answers, 1):
                if not raw and not session.json:
                    print(f"Received with rtt {(time.perf_counter() - began) * 1000:.3f}ms", file=sys.stderr)
                _print(answer, one, raw=raw, headers_only=False, as_json=session.json)
        return 0

    session.run(run)


async def _many(
    client: Client, subject: str, data: bytes, headers: list[tuple[str, str]], replies: int, timeout: float
) -> list[Message]:
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox, max_messages=replies)
    client.publish(subject, data, headers=headers, reply=inbox)
    answers: list[Message] = []
    try:
        async with asyncio.timeout(timeout):
            async for message in subscription:
                if message.status is not None and not message.data:
                    raise NoResponders(f"nobody is subscribed to {subject!r}", value=subject)
                answers.append(message)
    except TimeoutError:
        pass
    return answers


@reply_app.command()
def answer_all(
    subject: str,
    body: Annotated[str, Argument(help="may hold {{Request}}, {{Count}}, {{ID}}, {{Time}}")] = "",
    echo: Annotated[bool, Option("--echo", help="answer with the request")] = False,
    queue: Annotated[str, Option("--queue")] = "NATS-RPLY-22",
    count: Annotated[int, Option("--count", min=0, help="end after so many; 0: never")] = 0,
) -> None:
    """Answer requests on SUBJECT."""
    session = current()
    template = os.fsencode(body)

    async def run(client: Client) -> None:
        subscription = await client.subscribe(subject, queue=queue, max_messages=count)
        await client.flush(session.timeout)
        print(f"Listening on {subject!r} in group {queue!r}", file=sys.stderr, flush=True)
        number = 0
        async for message in subscription:
            number += 1
            print(f"[#{number}] Received on subject {message.subject!r}: {plain(message.data)}", flush=True)
            if message.reply:
                data = message.data if echo else _fill(template, number, bytes(message.data))
                message.respond(data, headers=_headers_of(message) if echo else None)

    session.run(run)


def _headers_of(message: Message) -> "MessageHeaders | None":
    try:
        return message.headers
    except HeaderError as error:
        print(f"the answer has no headers: those of the request cannot be read: {error}", file=sys.stderr, flush=True)
        return None


@rtt_app.command()
def round_trips(
    iterations: Annotated[int, Argument(min=1, help="pings, of which the mean is printed")] = 5,
) -> None:
    """How long a PING takes to the server and back."""
    session = current()

    async def run(client: Client) -> None:
        began = time.perf_counter()
        for _ in range(iterations):
            await client.flush(session.timeout)
        seconds = (time.perf_counter() - began) / iterations
        line = f"{client.server}: {seconds * 1000:.3f}ms"
        session.show({"server": client.server, "rtt": seconds, "iterations": iterations}, lambda: [line])

    session.run(run)
