"""/iggyz: topics with their groups, and clients, of the Iggy face. nats-server has no such page.

The lag of a group or consumer is the number of messages after its committed offset, in all partitions that it has read;
without a committed offset, all stored messages.
"""

import time
from typing import TYPE_CHECKING

from headwater.model.timestamps import format_time
from headwater.monitoring.ledger import Document
from headwater.monitoring.parameters import Parameters, page
from headwater.monitoring.steps import Steps
from headwater.monitoring.view import View

if TYPE_CHECKING:
    from headwater.iggy.clients import Client
    from headwater.iggy.topics import Topic

MOST = 1024  # topics, and clients, without a `limit`
IN_ONE_STEP = 64  # topics
TRANSPORTS = {1: "tcp", 2: "quic", 3: "http", 4: "websocket"}


def iggyz(view: View, parameters: Parameters) -> Steps:
    """The answer; `offset` and `limit` choose among topics and among clients. Raises ConfigError for invalid parameters."""
    offset, limit = page(parameters, MOST)
    service = view.broker.iggy_service
    document: Document = {
        "server_id": view.broker.server_id,
        "now": format_time(time.time_ns()),
        "offset": offset,
        "limit": limit,
    }
    if service is None:
        return {**document, "disabled": True}
    service.refresh()  # as for every listing of a client: shows NATS streams as topics
    named = [
        (stream.name, stream.origin, service.topics[entry.uid])
        for stream in service.catalog.streams
        for entry in stream.topics
        if entry.uid in service.topics
    ]
    topics = []
    for number, (stream_name, origin, topic) in enumerate(named[offset : offset + limit], 1):
        topics.append(_topic(stream_name, origin, topic))
        if number % IN_ONE_STEP == 0:
            yield
    clients = list(service.clients)
    return {
        **document,
        "streams": len(service.catalog.streams),
        "num_topics": len(named),
        "topics": topics,
        "refused_sends": service.clients.refused_sends,
        "num_clients": len(clients),
        "clients": [_client(client) for client in clients[offset : offset + limit]],
    }


def _topic(stream: str, origin: str, topic: "Topic") -> Document:
    entry = topic.entry
    document: Document = {
        "stream": stream,
        "name": entry.name,
        "partitions": len(entry.partitions) or len(topic.partitions),
        "messages": topic.messages,
        "bytes": topic.size,
        "max_bytes": entry.max_size,
        "last_offset_sum": sum(partition.log.end_offset for partition in topic.partitions),
        "groups": [
            {
                "id": group.id,
                "name": group.name,
                "members": topic.groups[group.id].members[:] if group.id in topic.groups else [],
                "behind": _behind(topic, f"g:{group.id}"),
            }
            for group in entry.groups
        ],
        "consumers": [
            {"name": name.removeprefix("c:"), "behind": _behind(topic, name)}
            for name in sorted({name for stored in topic.offsets.stored.values() for name in stored})
            if name.startswith("c:")
        ],
    }
    if origin:
        document["origin"] = origin
    if topic.failure:
        document["failure"] = topic.failure
    return document


def _behind(topic: "Topic", consumer: str) -> int:
    """Messages after the committed offset; in a partition without one, all stored messages."""
    behind = 0
    for position, partition in enumerate(topic.partitions):
        committed = topic.committed(position, consumer)
        first = partition.log.start_offset if committed is None else max(committed + 1, partition.log.start_offset)
        behind += max(0, partition.log.end_offset - first)
    return behind


def _client(client: "Client") -> Document:
    return {
        "id": client.id,
        "address": client.address,
        "transport": TRANSPORTS.get(client.transport, str(client.transport)),
        "era": client.era.name,
        "user": client.user.name if client.user is not None else "",
        "groups": len(client.memberships),
    }


def iggy_counts(view: View) -> dict[str, int]:
    """The face's counts in /metrics; empty without a face."""
    service = view.broker.iggy_service
    if service is None:
        return {}
    topics = list(service.topics.values())
    return {
        "clients": len(service.clients),
        "refused_sends": service.clients.refused_sends,
        "streams": len(service.catalog.streams),
        "topics": len(topics),
        "topics_unavailable": sum(bool(topic.failure) for topic in topics),
        "messages": sum(topic.messages for topic in topics),
        "bytes": sum(topic.size for topic in topics),
        "groups": sum(len(topic.entry.groups) for topic in topics),
        "messages_behind": sum(_behind(topic, f"g:{group.id}") for topic in topics for group in topic.entry.groups),
    }
