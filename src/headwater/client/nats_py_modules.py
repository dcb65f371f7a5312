"""Names of nats-py's modules (`nats.js.api`, `nats.micro`) in the modules of ours that take their place.

A class of theirs that is ours under another name can be imported by it; one without a counterpart raises ImportError with
what to use instead, and an attribute that answers have there raises AttributeError with it. Those of `nats.errors` and
`nats.js.errors` are in `headwater.errors`. Type checkers see none of them: new programs use our names. A test walks
nats-py's modules; docs/migration-from-nats-py.md has the tables below.
"""

import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType

API = MappingProxyType(
    {
        "LostStreamData": "LostData",
        "RawStreamMsg": "StoredMessage",
        "RePublish": "Republish",
        "SequenceInfo": "SequencePair",
        "StreamConsumerLimits": "ConsumerLimits",
        "StreamConsumerSource": "SourceConsumer",
        "StreamSourceInfo": "SourceInfo",
    }
)
"""Classes of `nats.js.api` that `headwater.client.jetstream_types` has under another name."""

_KEYS, _OBJECTS = "headwater.client.key_value", "headwater.client.object_store"
API_ADVICE = MappingProxyType(
    {
        "APIStats": "the server's /jsz has them",
        "AckPolicy": 'a text: "none", "all", "explicit", "flow_control"',
        "Base": "msgspec.json reads and writes our classes",
        "ConsumerPause": "`pause_consumer` returns when it paused; `consumer_info` has the rest",
        "ConsumerReset": "delete the consumer and create it anew",
        "DeliverPolicy": 'a text: "all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject"',
        "DiscardPolicy": 'a text: "old", "new"',
        "Header": "headwater.model.header_names.NatsHeader",
        "KeyValueConfig": f"{_KEYS}.BucketConfig",
        "ObjectInfo": f"{_OBJECTS}.ObjectInfo",
        "ObjectLink": f"{_OBJECTS}.ObjectLink",
        "ObjectMeta": "description=, metadata= and headers= of `put` and `update`",
        "ObjectMetaOptions": "chunk_size= of `put`; `link(name, target)`",
        "ObjectStoreConfig": f"{_OBJECTS}.StoreConfig",
        "PersistMode": 'a text: "default", "async"',
        "ReplayPolicy": 'a text: "instant", "original"',
        "RetentionPolicy": 'a text: "limits", "interest", "workqueue"',
        "StatusCode": "the number in `message.status.code`",
        "StorageType": 'a text: "file", "memory"',
        "StoreCompression": 'a text: "none", "s2"',
        "StreamPurgeRequest": "subject=, sequence= and keep= of `purge_stream`",
        "StreamsListIterator": "`async for` over `streams()`",
        "Tier": "`$JS.API.INFO` of the server: our servers have no tiers",
    }
)
API_ATTRIBUTES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "AccountInfo": {"api": "the server's /jsz has them", "tiers": "our servers have no tiers"},
        "ClusterInfo": {
            "raft_group": "the server's /jsz has it",
            "leader_since": "the server's /jsz has it",
            "traffic_acc": "the server's /jsz has it",
        },
        "ConsumerInfo": {"cluster": "`stream_info(stream).cluster`: its consumers are where the stream is"},
        "PubAck": {
            "batch_id": "`BatchAck.batch`, of `atomic_batch`",
            "batch_size": "`BatchAck.count`, of `atomic_batch`",
        },
        "ObjectInfo": {
            "is_link": "`info.options is not None and info.options.link is not None`",
            "meta": "`name`, `description`, `headers` and `options` of the information itself",
        },
        "StoredMessage": {"stream": "the name that you asked with", "header": "`headers`", "sequence": "`seq`"},
        "StreamConfig": {"template_owner": "nothing: servers have no templates any more, and refuse the field"},
        "StreamInfo": {"did_create": "`create_stream` raises JetStreamError where another one has the name"},
    }
)

MICRO_ADVICE = MappingProxyType(
    {
        "EndpointConfig": "arguments of `service.endpoint(name, handler, subject=, queue=)`",
        "GroupConfig": "the argument of `service.group(prefix)`",
        "ServiceConfig": "arguments of `add_service(client, name, version, description=, metadata=, queue=)`",
        "ServiceIdentity": "ServicePing",
        "ServiceVerb": 'a text: "PING", "INFO", "STATS"',
        "Endpoint": "`service.endpoint(...)` returns nothing; `service.stats()` has what it did",
        "EndpointManager": "Service and Group have `endpoint`",
        "GroupManager": "Service and Group have `group`",
    }
)
MICRO_ATTRIBUTES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "Service": {
            "add_endpoint": "`await service.endpoint(name, handler)`",
            "add_group": "`service.group(prefix)`",
            "stopped": "`stop()` ends when it is stopped",
        },
        "Group": {"add_endpoint": "`await group.endpoint(name, handler)`", "add_group": "`group.group(prefix)`"},
        "Request": {"respond_error": "`raise ServiceError(code, description)`"},
        "EndpointStats": {"data": "an endpoint of your own for it"},
    }
)


def names_of(module: str, renamed: Mapping[str, str], advice: Mapping[str, str]) -> Callable[[str], object]:
    """What `module` has for `__getattr__`. Not AttributeError for a name of `advice`: `from module import name` would drop
    its text."""

    def find(name: str) -> object:
        if name in renamed:
            return getattr(sys.modules[module], renamed[name])
        if name in advice:
            raise ImportError(f"{module} has no {name!r}; nats-py's {name!r} is here: {advice[name]}", name=module)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return find
