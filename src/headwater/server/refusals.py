"""The table of JetStream's requests without a service: what an account without streams gets as answers, and a list for the
documents. Pure."""

from typing import cast

from headwater.errors import JetStreamError
from headwater.exchange.router import Router
from headwater.jetstream.backup_api import BackupApi
from headwater.jetstream.consumer_api import ConsumerApi
from headwater.jetstream.consumer_registry import ConsumerRegistry
from headwater.jetstream.requests import Routes, find_call, refusal_of
from headwater.jetstream.service import routes
from headwater.jetstream.stream_api import StreamApi
from headwater.jetstream.stream_registry import StreamRegistry
from headwater.jetstream_documents.account import ApiStats
from headwater.jetstream_documents.answers import encode
from headwater.jetstream_documents.api_errors import api_error
from headwater.jetstream_ranges.door import KIND as RANGE_KIND
from headwater.jetstream_ranges.door import RANGE_VERB

_SILENT = "consumer_reset_response"


class Refusals:
    """Answers by the table of requests."""

    def __init__(self) -> None:
        self._routes = unserved_routes()

    def answer(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bytes:
        """The answer; b"" for a message that gets none."""
        call = find_call(self._routes, subject, reply, header_block, payload)
        if call is None or call.route.kind == _SILENT:
            return b""
        return encode(refusal_of(call, _error(call.route.kind, payload)))


def _error(kind: str, payload: bytes) -> JetStreamError:
    if kind.endswith(("_leader_stepdown_response", "_peer_response")):
        return api_error("cluster_required")
    if kind == "consumer_unpin_response" and not payload.strip():
        return api_error("invalid_json", reason="unexpected end of JSON input")
    return api_error("not_enabled_for_account")


def unserved_routes() -> Routes:
    """The table without a service, for listing: its handlers cannot be called."""
    no_streams, no_consumers = cast(StreamRegistry, None), cast(ConsumerRegistry, None)
    streams = StreamApi(no_streams, "", ApiStats)
    backups = BackupApi(no_streams, no_consumers, streams, cast(Router, None), lambda work: work.close(), dict)
    return routes(streams, ConsumerApi(no_streams, no_consumers, 0), backups)


def api_verbs() -> list[tuple[str, str]]:
    """(subject behind `$JS.API.`, type of the answer) of every supported request, for the documents."""
    served = []
    for verb, route in unserved_routes().items():
        names = ["<stream>", "<consumer>"][: route.fewest_names]
        served.append((".".join([*verb, *names]), route.kind))
    served += [
        ("CONSUMER.MSG.NEXT.<stream>.<consumer>", "messages, statuses"),
        ("DIRECT.GET.<stream>[.<subject>]", "messages, statuses"),
        (f"{RANGE_VERB.decode()}<stream>", RANGE_KIND),
    ]
    return sorted(served)
