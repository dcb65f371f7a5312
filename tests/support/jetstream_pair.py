"""The same JetStream requests to the real nats-server and to ours: answers compared field by field.

What must differ (times, names that a server makes up) is masked; everything else, field names and order of magnitude
included, has to be equal.
"""

import json
import re
from typing import Any

from headwater.client.blocking import BlockingClient
from headwater.client.client import connect
from headwater.model.message import Message

API = "$JS.API."

# Texts and numbers that no two servers share. `level`: of the API, which says what each can do. Of accounts and
# clusters ours has none, and leaves them out.
VOLATILE = {"created", "first_ts", "last_ts", "ts", "time", "inbound_duration", "last_active", "level"}
ACCOUNT = {"memory", "storage", "reserved_memory", "reserved_storage", "api", "limits", "tier", "domain", "store_used"}
METADATA = re.compile(r"^_nats\.")


def mask(value: Any, names: dict[str, str]) -> Any:
    """`value` without what no two servers share."""
    if isinstance(value, dict):
        return {
            key: "*" if key in VOLATILE or METADATA.match(key) else mask(part, names)
            for key, part in value.items()
            if key != "cluster" or not isinstance(part, dict)
        }
    if isinstance(value, list):
        return [mask(part, names) for part in value]
    return names.get(value, value) if isinstance(value, str) else value


def ask(client: BlockingClient, subject: str, body: object) -> Any:
    payload = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return json.loads(client.request(subject, payload, timeout=10.0)[1])


def compare(clients: list[BlockingClient], steps: list[tuple[str, object]]) -> list[Any]:
    """Put the steps to both servers; returns our answers. Consumer names that the servers made up are masked."""
    ours: list[Any] = []
    for subject, body in steps:
        answers = [ask(client, subject, body) for client in clients]
        masked = [
            mask(answer, {answer.get("name", ""): "*"} if "CONSUMER.CREATE" in subject else {}) for answer in answers
        ]
        assert masked[1] == masked[0], f"{subject} {str(body)[:200]}: ours {masked[1]}, the real one {masked[0]}"
        ours.append(answers[1])
    return ours


def written(messages: list[Message]) -> list[tuple[str, str, bytes, bytes]]:
    """Messages as a test compares them: subject, reply subject, header block, payload; times masked."""
    return [
        (
            message.subject,
            re.sub(r"\.\d{18,}\.", ".*.", message.reply or ""),
            re.sub(rb"(Time-Stamp: )[^\r]+", rb"\1*", message.header_block),
            bytes(message.data),
        )
        for message in messages
    ]


async def receive(
    url: str, subject: str, request: bytes, last: int, *, listen: str = "", queue: str = ""
) -> list[Message]:
    """Publish a request, and take what comes to its inbox (or to `listen`): `last` messages, or up to a status other
    than a heartbeat when that comes first."""
    async with await connect(url) as client:
        inbox = listen or client.new_inbox()
        received: list[Message] = []
        subscription = await client.subscribe(inbox, queue=queue)
        await client.flush()
        await client.publish(subject, request, reply=client.new_inbox() if listen else inbox)
        async for message in subscription:
            received.append(message)
            status = message.status
            if len(received) == last or (status is not None and status.code > 100):
                break
        return received
