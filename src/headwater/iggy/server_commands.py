"""Commands about the server itself: statistics, addresses, supported options, and a diagnostic snapshot."""

import os
import platform
import shutil
from dataclasses import asdict
from typing import Any, Final

from headwater.iggy import snapshot
from headwater.iggy.clients import Client
from headwater.iggy.service import Service
from headwater.iggy.stream_commands import listed
from headwater.iggy_wire import commands as c
from headwater.iggy_wire import reply_codec as views
from headwater.iggy_wire.commands import Command
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.option_catalog import described
from headwater.version import VERSION

SERVER_VERSION: Final = "0.9.0"
"""The version in the answer to a login: that of the server that released clients were tested with. `os_name` names
Headwater."""
_PACKED_VERSION: Final = 9000
CLUSTER_NAME, NODE_NAME = "single-node", "iggy-node"  # upstream's names for a single server


_NODE_PORTS: Final = ("tcp", "quic", "http", "websocket")  # in the order of NodeView


def ping(service: Service, client: Client, command: c.Ping) -> None:
    return None


def kill(service: Service, client: Client, command: c.Kill) -> None:
    raise refusal("feature_unavailable", "a client does not stop this server")


def cluster(service: Service, client: Client, command: c.GetClusterMetadata) -> views.ClusterView:
    host = next((at[0] for at in service.machine.listeners.values()), "127.0.0.1")
    ports = [service.machine.listeners[name][1] if name in service.machine.listeners else 0 for name in _NODE_PORTS]
    return views.ClusterView(CLUSTER_NAME, [views.NodeView(NODE_NAME, host, *ports)])


def describe_options(service: Service, client: Client, command: c.DescribeOptions) -> list[views.OptionView]:
    return described(command.scope, client.era)


def route(service: Service, client: Client, command: c.GetPartitionRoute) -> views.RouteView:
    topic = service.topic(command.stream, command.topic)[1]
    partition = topic.partition(command.partition, client.era.first_id)
    return views.RouteView(topic.incarnation(partition), service.operations, len(topic.partitions))


def changes(service: Service, client: Client, command: c.GetMetadataChanges) -> None:
    raise refusal("feature_unavailable", "changes of what exists are not kept here")


async def flush(service: Service, client: Client, command: c.FlushUnsavedBuffer) -> None:
    partition = service.topic(command.stream, command.topic)[1].partition(command.partition, client.era.first_id)
    await partition.committer.flush()


def stats(service: Service, client: Client, command: c.GetStats) -> views.StatsView:
    topics = list(service.topics.values())
    usage, uname = service.machine.usage(), platform.uname()
    disk = shutil.disk_usage(service.files.directory)
    now = service.clock_us()
    return views.StatsView(
        process_id=os.getpid(),
        cpu_usage=usage.cpu,
        total_cpu_usage=usage.total_cpu,
        memory_usage=usage.memory,
        total_memory=usage.total_memory,
        available_memory=usage.available_memory,
        read_bytes=usage.read_bytes,
        written_bytes=usage.written_bytes,
        threads=usage.threads,
        run_time=now - service.started_us,
        start_time=service.started_us,
        messages_size=sum(topic.size for topic in topics),
        streams=len(listed(service)),
        topics=len(topics),
        partitions=sum(len(topic.partitions) for topic in topics),
        segments=sum(len(partition.log.spans) for topic in topics for partition in topic.partitions),
        messages=sum(topic.messages for topic in topics),
        clients=len(service.clients),
        groups=sum(len(topic.entry.groups) for topic in topics),
        hostname=uname.node,
        os_name=f"headwater {VERSION}",
        os_version=uname.version,
        kernel_version=uname.release,
        server_version=SERVER_VERSION,
        packed_version=_PACKED_VERSION,
        free_disk=disk.free,
        total_disk=disk.total,
        open_files=usage.open_files,
        most_open_files=usage.most_open_files,
    )


async def get_snapshot(service: Service, client: Client, command: c.GetSnapshot) -> bytes:
    """The archive, made in a thread; one at a time, as in upstream."""
    types = snapshot.chosen(command.types)
    if service.machine.makes_snapshot:
        raise refusal("snapshot_failed", "another snapshot is being made")
    numbers = "".join(f"{name} {value}\n" for name, value in asdict(stats(service, client, c.GetStats())).items())
    places = "".join(f"{name} {host}:{port}\n" for name, (host, port) in service.machine.listeners.items())
    options = service.options
    sections = {
        "filesystem_overview": lambda: snapshot.overview(str(service.files.directory)),
        "process_list": lambda: snapshot.text_of("/proc/self/status"),
        "resource_usage": lambda: numbers,
        "test": lambda: "test\n",
        "server_logs": lambda: "".join(f"{finding}\n" for finding in service.files.findings),
        "server_config": lambda: f"{places}sync {options.sync}\nverify {options.verify}\nversion {VERSION}\n",
    }
    service.machine.makes_snapshot = True
    try:
        return await service.in_thread(lambda: snapshot.archive(command.compression, types, sections))
    finally:
        service.machine.makes_snapshot = False


HANDLERS: Final[dict[type[Command], Any]] = {
    c.Ping: ping,
    c.Kill: kill,
    c.GetStats: stats,
    c.GetSnapshot: get_snapshot,
    c.GetClusterMetadata: cluster,
    c.DescribeOptions: describe_options,
    c.GetPartitionRoute: route,
    c.GetMetadataChanges: changes,
    c.FlushUnsavedBuffer: flush,
}
