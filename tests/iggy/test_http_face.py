import asyncio
import base64
import json
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

from headwater import HeaderValue, TypedHeaders
from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy.http_face import HttpFace
from headwater.iggy_client.client import connect
from headwater.iggy_wire.commands import Message
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.option_catalog import described
from headwater.iggy_wire.options import TOPIC
from headwater.net.limits import DEFAULTS, IGGY_HTTP

Call = Callable[..., Awaitable[tuple[int, Any]]]


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def caller(port: int, token: str = "") -> Call:
    def request(method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = json.dumps(body).encode() if body is not None else None
        made = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, method=method)
        made.add_header("Content-Type", "application/json")
        if token:
            made.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(made, timeout=10) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                status, text = error.code, error.read().decode()
        return status, json.loads(text) if text[:1] in ("{", "[") else text

    return lambda *arguments: asyncio.to_thread(request, *arguments)


def with_http(tmp_path: Path, work: Callable[[Iggy], Awaitable[None]]) -> None:
    options = IggyOptions(tcp=("127.0.0.1", 0), http=("127.0.0.1", 0), seed_http=("127.0.0.1", 0))

    async def main() -> None:
        async with asyncio.timeout(30), Iggy(options, tmp_path) as iggy:
            await work(iggy)

    asyncio.run(main())


async def logged_in(iggy: Iggy, version: str | None = None) -> Call:
    login = {"username": "iggy", "password": "iggy", "version": version, "context": ""}
    status, body = await caller(iggy.http_port)("POST", "/users/login", login)
    assert (status, body["user_id"]) == (200, 0)
    return caller(iggy.http_port, body["access_token"]["token"])


def test_the_conversation_of_the_released_client(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        call = await logged_in(iggy)
        assert await call("GET", "/ping") == (200, "pong")
        assert (await call("POST", "/streams", {"name": "stream1"}))[0] == 200
        topic = {"partitions_count": 1, "compression_algorithm": "none", "message_expiry": 0, "max_topic_size": 0}
        options = {"consumer_offset_durability": "replicated", "durability": "replicated"}
        status, made = await call("POST", "/streams/stream1/topics", {**topic, "name": "topic1", "options": options})
        assert (status, made["partitions_count"]) == (200, 1)
        header = {"key": {"kind": "string", "value": "a2V5XzE="}, "value": {"kind": "string", "value": "dmFsdWUgMQ=="}}
        messages = [{"id": 7, "payload": "aGVsbG8=", "user_headers": [header]}, {"id": 0, "payload": "eA=="}]
        sent = {"partitioning": {"kind": "partition_id", "value": "AAAAAA=="}, "messages": messages}
        status, answer = await call("POST", "/streams/stream1/topics/topic1/messages", sent)
        assert answer["confirmations"] == [{"stream_id": 0, "topic_id": 0, "partition_id": 0, "base_offset": 0}]
        path = "/streams/stream1/topics/topic1/messages?consumer_id=1&partition_id=0&kind=offset&value=0&count=10"
        status, found = await call("GET", path + "&auto_commit=false")
        assert (found["partition_id"], found["current_offset"], found["count"]) == (0, 1, 2)
        assert found["messages"][0]["user_headers"] == [header]
        assert [m["payload"] for m in found["messages"]] == ["aGVsbG8=", "eA=="]
        assert found["messages"][0]["header"]["id"] == 7
        assert UUID(int=found["messages"][1]["header"]["id"]).version == 4

    with_http(tmp_path, work)


def test_the_cluster_and_a_snapshot_over_http(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        call = await logged_in(iggy)
        status, cluster = await call("GET", "/cluster/metadata")
        endpoints = {"tcp": iggy.tcp_port, "quic": 0, "http": iggy.http_port, "websocket": 0}
        node = {"name": "iggy-node", "ip": "127.0.0.1", "endpoints": endpoints, "role": "leader", "status": "healthy"}
        assert (status, cluster) == (200, {"name": "single-node", "nodes": [node]})
        assert (await caller(iggy.http_port)("GET", "/cluster/metadata"))[0] == 401
        wanted = {"compression": "deflated", "snapshot_types": ["test", "server_config"]}
        assert (await call("POST", "/snapshot", {**wanted, "compression": "rar"}))[0] == 400
        assert (await call("POST", "/snapshot", {**wanted, "snapshot_types": ["secrets"]}))[0] == 400
        await call("POST", "/streams", {"name": "s"})
        topic = {"partitions_count": 1, "name": "t", "options": {"segment_size": "128 MiB"}}
        assert (await call("POST", "/streams/s/topics", topic))[1]["options"]["segment_size"]["value"] == str(128 << 20)
        assert (await call("PUT", "/streams/s", {"name": "s", "options": {"colour": "red"}}))[1]["id"] == 4041
        assert (await call("GET", "/streams/none/topics")) == (200, [])

    with_http(tmp_path, work)


def test_the_seeds_json_wants_no_login_and_has_its_shapes(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        call = caller(iggy.seed_http_port)
        assert (await call("POST", "/streams", {"stream_id": 1, "name": "Sample stream"}))[0] == 201
        await call("POST", "/streams/1/topics", {"topic_id": 1, "name": "sample", "partitions_count": 1})
        assert (await call("GET", "/streams/1"))[1]["name"] == "sample.stream"
        headers = {"key_1": {"kind": "string", "value": b64(b"value 1")}, "n": {"kind": "uint8", "value": b64(b"\7")}}
        messages = [{"id": 0, "payload": b64(b"one")}, {"id": 2**127, "payload": b64(b"two"), "headers": headers}]
        sent = {"partitioning": {"kind": "partition_id", "value": "AQAAAA=="}, "messages": messages}
        assert await call("POST", "/streams/1/topics/1/messages", sent) == (201, "")
        status, found = await call(
            "GET", "/streams/1/topics/1/messages?consumer_id=1&partition_id=1&kind=first&count=9"
        )
        assert [(m["offset"], m["id"], m["payload"], m["headers"]) for m in found] == [
            (0, 0, b64(b"one"), None),
            (1, 2**127, b64(b"two"), headers),
        ]
        big = {f"k{n}": {"kind": "raw", "value": b64(b"v" * 255)} for n in range(402)}
        sent["messages"] = [{"payload": b64(b"x"), "headers": big}]
        status, refused = await call("POST", "/streams/1/topics/1/messages", sent)
        assert (status, refused["id"]) == (400, 4016)
        offsets = "/streams/1/topics/1/consumer-offsets"
        assert (await call("PUT", offsets, {"consumer_id": 1, "partition_id": 1, "offset": 1}))[0] == 204
        assert (await call("GET", offsets + "?consumer_id=1&partition_id=1"))[1] == {"consumer_id": 1, "offset": 1}

    with_http(tmp_path, work)


def test_tokens_are_wanted_and_end(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        stranger = caller(iggy.http_port)
        assert (await stranger("GET", "/streams"))[0] == 401
        assert (await caller(iggy.http_port, "made-up")("GET", "/streams"))[0] == 401
        assert (await stranger("POST", "/users/login", {"username": "iggy", "password": "no"}))[0] == 401
        call = await logged_in(iggy)
        assert await call("GET", "/streams") == (200, [])
        _, token = await call("POST", "/personal-access-tokens", {"name": "ci token", "expiry": 0})
        login = await stranger("POST", "/personal-access-tokens/login", {"token": token["token"]})
        assert (login[0], login[1]["user_id"]) == (200, 0)
        assert (await call("DELETE", "/users/logout"))[0] == 204
        assert (await call("GET", "/streams"))[0] == 401

    with_http(tmp_path, work)


def test_users_have_what_they_are_given(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        root = await logged_in(iggy)
        await root("POST", "/streams", {"name": "open"})
        await root("POST", "/streams", {"name": "closed"})
        granted = {"global": {}, "streams": {"0": {"read_stream": True}}}
        user = {"username": "reader", "password": "secret", "status": "active", "permissions": granted}
        status, made = await root("POST", "/users", user)
        assert (status, made["username"], made["status"]) == (200, "reader", "active")
        status, body = await caller(iggy.http_port)(
            "POST", "/users/login", {"username": "reader", "password": "secret"}
        )
        reader = caller(iggy.http_port, body["access_token"]["token"])
        assert [(await reader("GET", f"/streams/{name}"))[0] for name in ("open", "closed")] == [200, 403]
        assert (await reader("POST", "/streams", {"name": "more"}))[0] == 403
        assert (await root("PUT", "/users/reader", {"status": "inactive"}))[0] == 204
        again = await caller(iggy.http_port)("POST", "/users/login", {"username": "reader", "password": "secret"})
        assert (again[0], again[1]["code"]) == (401, "user_inactive")
        assert (await root("DELETE", "/users/reader"))[0] == 204
        assert (await root("GET", "/users/reader"))[0] == 404

    with_http(tmp_path, work)


def test_bad_requests_are_told_what_is_wrong(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        call = await logged_in(iggy)
        await call("POST", "/streams", {"name": "s"})
        await call("POST", "/streams/s/topics", {"name": "t", "partitions_count": 1})
        messages = "/streams/s/topics/t/messages"
        balanced = {"kind": "balanced", "value": ""}
        for body, code in [
            ({}, "invalid_format"),
            ({"partitioning": balanced, "messages": []}, "invalid_messages_count"),
            ({"partitioning": balanced, "messages": [{"payload": "*"}]}, "invalid_format"),
            ({"partitioning": balanced, "messages": [{"payload": ""}]}, "empty_message_payload"),
            ({"partitioning": {"kind": "partition_id", "value": "AA=="}, "messages": []}, "invalid_key_value_length"),
            (
                {
                    "partitioning": balanced,
                    "messages": [{"payload": "eA==", "headers": {"k": {"kind": "no", "value": ""}}}],
                },
                "invalid_header_kind",
            ),
        ]:
            status, answer = await call("POST", messages, body)
            assert (status, answer["code"]) == (400, code)
        assert (await call("GET", "/streams/none"))[0] == 404
        assert (await call("GET", messages + "?kind=sideways"))[0] == 400
        assert (await call("GET", messages + "?partition_id=7"))[0] == 404

    with_http(tmp_path, work)


def test_both_transports_show_one_message(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        call = await logged_in(iggy)
        async with await connect(f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}") as client:
            await client.create_stream("s")
            await client.create_topic("s", "t")
            headers = TypedHeaders({"n": HeaderValue.from_uint64(5)})
            await client.send("s", "t", [Message(b"x", headers, id=3)], 0)
            _, found = await call("GET", "/streams/s/topics/t/messages?partition_id=0&kind=last&count=1")
        (message,) = found["messages"]
        assert TypedHeaders.from_json(message["user_headers"]) == headers
        assert message["header"]["id"] == 3

    with_http(tmp_path, work)


def test_a_strangers_body_is_bounded_in_size_and_time(tmp_path: Path) -> None:
    async def main() -> None:
        bounds = {**DEFAULTS, IGGY_HTTP: DEFAULTS[IGGY_HTTP].replace(login_seconds=0.3, login_bytes=4096)}
        options = IggyOptions(tcp=None, http=("127.0.0.1", 0), limits=bounds)
        async with asyncio.timeout(30), Iggy(options, tmp_path) as iggy:
            head = b"POST /streams HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
            for output, status in ((head % 5000 + b"x" * 5000, b"400"), (head % 5000 + b"{", b"408")):
                reader, writer = await asyncio.open_connection("127.0.0.1", iggy.http_port)
                writer.write(output)
                assert (await reader.readuntil(b"\r\n")).split()[1] == status
                writer.close()
            call = await logged_in(iggy)
            assert (await call("POST", "/streams", {"name": "stream1", "stream_id": 1, "more": "x" * 5000}))[0] == 200

    asyncio.run(main())


def test_the_operator_sees_who_could_not_log_in_and_who_may_not(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        noted: list[tuple[str, dict[str, object]]] = []
        iggy.service.note = lambda kind, **fields: noted.append((kind, fields))
        assert (await caller(iggy.http_port)("POST", "/users/login", {"username": "iggy", "password": "no"}))[0] == 401
        call = await logged_in(iggy)
        await call("POST", "/users", {"username": "bob", "password": "bobbob", "status": "active"})
        _, body = await caller(iggy.http_port)("POST", "/users/login", {"username": "bob", "password": "bobbob"})
        assert (await caller(iggy.http_port, body["access_token"]["token"])("GET", "/streams"))[0] == 403
        assert [(kind, fields["user"]) for kind, fields in noted] == [
            ("login_failed", "iggy"),
            ("request_refused", "bob"),
        ]
        assert "no" not in noted[0][1].values()

    with_http(tmp_path, work)


def test_what_only_apaches_interface_had_is_there(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        call = await logged_in(iggy)
        await call("POST", "/streams", {"name": "s /1"})
        topic = "/streams/s%20%2F1/topics"
        await call("POST", topic, {"name": "t", "partitions_count": 1})
        assert (await call("GET", "/streams/s%20%2F1"))[1]["name"] == "s /1"
        offsets = f"{topic}/t/consumer-offsets"
        await call("POST", f"{topic}/t/messages", {"partitioning": BALANCED, "messages": [{"payload": "eA=="}]})
        assert (await call("PUT", offsets, {"consumer_id": "me", "partition_id": 0, "offset": 0}))[0] == 204
        assert (await call("DELETE", f"{offsets}/me?partition_id=0"))[0] == 204
        assert (await call("GET", f"{offsets}?consumer_id=me&partition_id=0"))[0] == 404
        assert (await call("DELETE", f"{topic}/t/partitions/0?segments_count=1"))[0] == 204
        assert (await call("GET", "/clients/77"))[0] == 404
        (token,) = [(await call("POST", "/personal-access-tokens", {"name": "ci token", "expiry": 0}))[1]]
        assert (await call("GET", "/personal-access-tokens"))[1] == [{"name": "ci token", "expiry_at": None}]
        login = (await call("POST", "/personal-access-tokens/login", {"token": token["token"]}))[1]
        old = {"token": login["access_token"]["token"]}
        status, renewed = await call("POST", "/users/refresh-token", old)
        assert (status, renewed["user_id"]) == (200, 0)
        assert (await call("POST", "/users/refresh-token", old))[0] == 401
        assert (await caller(iggy.http_port, renewed["access_token"]["token"])("GET", "/streams"))[0] == 200

    with_http(tmp_path, work)


BALANCED = {"kind": "balanced", "value": ""}


def test_protocol_0_12_waits_names_partitions_and_alters_what_it_names(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        call = await logged_in(iggy)
        await call("POST", "/streams", {"name": "s", "options": {}})
        made = {"name": "t", "partitions_count": 1, "options": {"message_expiry": "7 days"}}
        _, topic = await call("POST", "/streams/s/topics", made)
        (partition,) = topic["partitions"]
        context, place = partition["context"], "/streams/s/topics/t"
        assert context["incarnation"] > 0 and (partition["members"], partition["in_sync_members"]) == ([0], [0])
        expiry = topic["options"]["message_expiry"]
        assert expiry == {"value": str(7 * 86_400_000_000), "kind": "uint64", "explicit": True}
        assert topic["options"]["max_topic_size"]["explicit"] is False
        query = "?consumer_id=1&partition_id=0&kind=offset&value=0&count=10&min_count=2&max_bytes=1000000"
        waiting = asyncio.ensure_future(call("GET", f"{place}/messages/deferred{query}&wait_us=20000000"))
        sent = {"partitioning": {"kind": "partition_id", "value": "AAAAAA=="}, "messages": [{"payload": "eA=="}]}
        for _ in range(2):
            assert (await call("POST", f"{place}/messages", {**sent, "context": context}))[0] == 201
        status, found = await waiting
        assert (status, found["count"], found["context"]["incarnation"]) == (200, 2, context["incarnation"])
        another = {**context, "incarnation": context["incarnation"] + 1}
        status, refused = await call("POST", f"{place}/messages", {**sent, "context": another})
        assert (status, refused["id"]) == (400, 87)
        stored = {"consumer_id": "1", "partition_id": 0, "offset": 1}
        status, refused = await call("PUT", f"{place}/consumer-offsets", {**stored, "context": another})
        assert (status, refused["id"]) == (400, 87)
        assert (await call("PUT", f"{place}/consumer-offsets", {**stored, "context": context}))[0] == 204
        status, found = await call("POST", f"{place}/messages/deferred{query}&auto_commit=true&wait_us=0")
        assert (status, found["count"]) == (200, 2)
        assert (await call("GET", f"{place}/messages/deferred{query}&wait_us=900000000"))[0] == 400
        assert (await call("PUT", place, {"max_topic_size": "1 GiB", "reset": []}))[0] == 204
        assert (await call("PUT", place, {"name": "u", "message_expiry": None, "reset": ["message_expiry"]}))[0] == 204
        topic = (await call("GET", "/streams/s/topics/u"))[1]
        assert topic["max_topic_size"] == 1 << 30 and topic["options"]["message_expiry"]["explicit"] is False
        status, refused = await call("PUT", "/streams/s/topics/u", {"message_expiry": 0})
        assert (status, refused["id"]) == (400, 3) and "alters nothing" in refused["reason"]

    with_http(tmp_path, work)


def test_the_version_in_a_login_says_which_options_there_are(tmp_path: Path) -> None:
    async def options(call: Call, scope: str) -> dict[str, dict[str, Any]]:
        return {option["key"]: option for option in (await call("GET", f"/options/{scope}"))[1]}

    async def work(iggy: Iggy) -> None:
        old, w, x = [await logged_in(iggy, version) for version in ("0.11.0", "0.11.1-edge.5", "0.11.1-edge.9")]
        assert (await options(old, "topic")).keys() - (await options(w, "topic")).keys() == {
            "enforce_fsync",
            "replication_factor",
        }
        assert (await options(x, "topic")).keys() - (await options(w, "topic")).keys() == {"replication_factor"}
        assert (await options(old, "stream")) == (await options(old, "user")) == {}
        names = ["updatable", "resettable", "secret", "read_only", "critical"]
        topics, streams = await options(w, "topic"), await options(w, "stream")
        assert [topics["message_expiry"][name] for name in names] == [True, True, False, False, False]
        assert [topics["compression_algorithm"][name] for name in names] == [False] * 5
        assert [streams["encryption_key"][name] for name in names] == [False, False, True, False, True]
        assert topics["segment_size"]["default_value"] == list((1 << 30).to_bytes(8, "little"))
        assert list(await options(w, "user")) == ["username", "status"]
        assert (await w("GET", "/options/colour"))[0] == 400

    with_http(tmp_path, work)


IMPOSSIBLE = [
    ("POST", "/streams", {"name": "key", "options": {"encryption_key": b64(bytes(32))}}, 4106),
    ("POST", "/streams", {"name": "key", "options": {"encryption_key_source": "none"}}, 4105),
    ("POST", "/streams/s/topics", {"name": "u", "partitions_count": 1, "options": {"enforce_fsync": True}}, 4041),
    ("PUT", "/streams/s/topics/t", {"compression_algorithm": "gzip"}, 4103),
    ("PUT", "/streams/s/topics/t", {"name": "u", "compression_algorithm": "gzip"}, 4103),
    ("PUT", "/streams/s/topics/t", {"colour": "red"}, 4041),
    ("PUT", "/streams/s", {"reset": ["encryption_key_source"]}, 4105),
    ("PUT", "/users/iggy", {"reset": ["critical_keys"]}, 4105),
    ("PUT", "/users/iggy", {"reset": ["status"]}, 4104),
]


REASONS = {  # as upstream's clients show them
    4041: "Unsupported option key",
    4103: "Option cannot be updated after creation",
    4104: "Option cannot be reset",
    4105: "Option is read-only",
    4106: "nothing is encrypted",
}


def test_what_0_12_refuses_of_options_is_refused_with_its_number(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        call = await logged_in(iggy, "0.11.1-edge.5")
        status, stream = await call("POST", "/streams", {"name": "s"})
        assert stream["options"] == {"encryption_key_source": {"value": "none", "kind": "string", "explicit": False}}
        status, topic = await call("POST", "/streams/s/topics", {"name": "t", "partitions_count": 1})
        assert topic["options"].keys() == {option.key for option in described(TOPIC, Era.W)} - {"name"}
        for method, path, body, number in IMPOSSIBLE:
            status, refused = await call(method, path, body)
            assert (path, status, refused["id"]) == (path, 400, number), body
            assert refused["reason"].startswith(REASONS[number])
        assert len((await call("GET", "/streams"))[1]) == 1
        assert (await call("GET", "/streams/s/topics/t"))[1] == topic

    with_http(tmp_path, work)


def test_a_poll_that_waits_is_answered_when_the_server_stops(tmp_path: Path) -> None:
    async def work(iggy: Iggy) -> None:
        call = await logged_in(iggy)
        await call("POST", "/streams", {"name": "s"})
        await call("POST", "/streams/s/topics", {"name": "t", "partitions_count": 1})
        query = "?consumer_id=1&partition_id=0&kind=offset&value=0&count=1&min_count=1&max_bytes=1000&wait_us=500000000"
        waiting = asyncio.ensure_future(call("GET", f"/streams/s/topics/t/messages/deferred{query}"))
        (face,) = [other for other in iggy._others if isinstance(other, HttpFace) and not other._seed]
        while not face._waits._open:  # noqa: ASYNC110  # a request under way has no event
            await asyncio.sleep(0.005)
        await iggy.stop()
        status, found = await waiting
        assert (status, found["count"]) == (200, 0)

    with_http(tmp_path, work)
