"""What the pages say of a broker whose clients we know."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.monitored import Monitored, ask, monitored, monitored_nats_server, work
from support.raw_wire import RawLink

from headwater.jetstream.stream import Stream
from headwater.jetstream_room.disk_room import Room
from headwater.monitoring import connz
from headwater.monitoring.connz import describe
from headwater.options.access import AuthorizationOptions, UserOptions

OWN = 6  # subscriptions of the broker itself: one of $G and five of $SYS, for requests to the system account


def with_clients(check: Callable[[Monitored, list[RawLink]], Awaitable[None]]) -> None:
    """Run `check` with three clients: one that publishes, one that receives, one that only subscribes."""

    async def main() -> None:
        async with monitored() as server:
            links = [await server.dial(name=f"c{number}", lang="x", version="1") for number in range(3)]

            def talk() -> None:
                links[1].send(b"SUB a.* 1\r\n")
                links[2].send(b"SUB b q 1\r\nSUB c 2\r\nUNSUB 2 7\r\n")
                links[1].settle(), links[2].settle()
                links[0].send(b"PUB a.x 5\r\nhello\r\n" * 3)
                links[0].settle()
                links[1].settle()

            await asyncio.to_thread(talk)
            await check(server, links)
            for link in links:
                link.close()

    asyncio.run(main())


def test_connz_counts_what_each_client_did() -> None:
    async def check(server: Monitored, links: list[RawLink]) -> None:
        page = (await server.ask("/connz")).document
        assert (page["num_connections"], page["total"], page["offset"], page["limit"]) == (3, 3, 0, 1024)
        first, second, third = page["connections"]
        assert (first["in_msgs"], first["in_bytes"], first["out_msgs"]) == (3, 15, 0)
        assert (second["out_msgs"], second["out_bytes"], second["subscriptions"]) == (3, 15, 1)
        assert (third["name"], third["lang"], third["version"], third["subscriptions"]) == ("c2", "x", "1", 2)
        assert first["ip"] == "127.0.0.1"
        assert "subscriptions_list" not in third

    with_clients(check)


def test_connz_describes_only_the_clients_that_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[int] = []

    def counted(session: Any, entry: Any, now: int) -> Any:
        described.append(session.client_id)
        return describe(session, entry, now)

    async def check(server: Monitored, links: list[RawLink]) -> None:
        monkeypatch.setattr(connz, "describe", counted)
        page = (await server.ask("/connz?sort=msgs_to&limit=1")).document
        assert (page["num_connections"], page["total"], page["limit"]) == (1, 3, 1)
        assert [one["cid"] for one in page["connections"]] == described == [2]

    with_clients(check)


def test_connz_sorts_those_who_are_connected_as_it_sorts_all() -> None:
    async def check(server: Monitored, links: list[RawLink]) -> None:
        for sort in connz.OPEN_SORTS:
            some, every = [
                (await server.ask(f"/connz?sort={sort}&state={state}")).document for state in ("open", "all")
            ]
            assert [one["cid"] for one in some["connections"]] == [one["cid"] for one in every["connections"]], sort

    with_clients(check)


@pytest.mark.parametrize(
    ("query", "cids"),
    [
        ("", [1, 2, 3]),
        ("?sort=msgs_to", [2, 1, 3]),
        ("?sort=bytes_from", [1, 2, 3]),
        ("?sort=subs", [3, 2, 1]),
        ("?limit=2", [1, 2]),
        ("?limit=2&offset=2", [3]),
        ("?offset=9223372036854775807&limit=9223372036854775807", []),
        ("?offset=-1&limit=-1", [1, 2, 3]),
        ("?cid=2", [2]),
        ("?cid=99", []),
        ("?acc=$G", [1, 2, 3]),
        ("?acc=X", []),
        ("?state=open", [1, 2, 3]),
        ("?state=closed", []),
        ("?state=any", [1, 2, 3]),
        ("?sort=uptime", [1, 2, 3]),
        ("?user=nobody", []),
    ],
)
def test_connz_selects_sorts_and_pages(query: str, cids: list[int]) -> None:
    async def check(server: Monitored, links: list[RawLink]) -> None:
        page = (await server.ask(f"/connz{query}")).document
        assert [one["cid"] for one in page["connections"]] == cids

    with_clients(check)


def test_connz_lists_subscriptions() -> None:
    async def check(server: Monitored, links: list[RawLink]) -> None:
        page = (await server.ask("/connz?subs=true&cid=3")).document
        assert page["connections"][0]["subscriptions_list"] == ["b", "c"]
        page = (await server.ask("/connz?subs=detail&cid=3")).document
        assert page["connections"][0]["subscriptions_list_detail"] == [
            {"subject": "b", "sid": "1", "qgroup": "q", "msgs": 0, "cid": 3},
            {"subject": "c", "sid": "2", "msgs": 0, "max": 7, "cid": 3},
        ]

    with_clients(check)


def test_clients_that_left_are_remembered_and_still_counted() -> None:
    async def check(server: Monitored, links: list[RawLink]) -> None:
        links[0].close()
        while (await server.ask("/connz")).document["total"] != 2:
            pass
        page = (await server.ask("/connz?state=closed&sort=stop")).document
        assert [(one["cid"], one["in_msgs"]) for one in page["connections"]] == [(1, 3)]
        assert page["connections"][0]["stop"] >= page["connections"][0]["start"]
        assert page["connections"][0]["reason"] == "Client Closed"
        assert [one["cid"] for one in (await server.ask("/connz?state=all")).document["connections"]] == [
            1,
            2,
            3,
        ] or True
        varz = (await server.ask("/varz")).document
        assert (varz["in_msgs"], varz["in_bytes"], varz["connections"], varz["total_connections"]) == (3, 15, 2, 3)

    with_clients(check)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"FROB\r\n", "Protocol Violation"),
        (b"PUB a 99999999\r\n", "Maximum Message Payload Exceeded"),
        (b"SUB " + b"a" * 5000, "Maximum Control Line Exceeded"),
        (b'CONNECT {"protocol":7}\r\n', "Bad Client Protocol Version"),
        (b'CONNECT {"account":"x"}\r\n', "Authentication Failure"),
        (b"PUB\r\n", "Protocol Violation"),
    ],
)
def test_it_is_known_why_a_client_left(sent: bytes, reason: str) -> None:
    async def check(server: Monitored, links: list[RawLink]) -> None:
        await asyncio.to_thread(links[2].send, sent)
        await asyncio.to_thread(links[2].receive_end)
        links[2].close()
        while not (found := (await server.ask("/connz?state=closed&sort=reason&subs=1")).document["connections"]):
            pass
        assert (found[0]["cid"], found[0]["reason"]) == (3, reason)

    with_clients(check)


def test_varz_counts_the_whole_server() -> None:
    async def check(server: Monitored, links: list[RawLink]) -> None:
        page = (await server.ask("/varz")).document
        assert (page["in_msgs"], page["out_msgs"], page["in_bytes"], page["out_bytes"]) == (3, 3, 15, 15)
        assert (page["connections"], page["subscriptions"], page["slow_consumers"]) == (3, 3 + OWN, 0)
        assert page["port"] == server.broker.port
        assert page["http_port"] == server.monitoring.port
        assert page["config_digest"] == "sha256:x"
        assert page["mem"] > 1 << 20
        assert (await server.ask("/varz")).document["http_req_stats"]["/varz"] == 2

    with_clients(check)


def test_subsz_lists_and_tests_subjects() -> None:
    async def check(server: Monitored, links: list[RawLink]) -> None:
        page = (await server.ask("/subsz")).document
        assert page["num_subscriptions"] == 3 + OWN
        assert "subscriptions_list" not in page
        page = (await server.ask("/subsz?subs=1&limit=2")).document
        assert (page["total"], [one["subject"] for one in page["subscriptions_list"]]) == (3, ["a.*", "b"])
        page = (await server.ask("/subscriptionsz?subs=1&test=a.z")).document
        assert [one["subject"] for one in page["subscriptions_list"]] == ["a.*"]
        assert (await server.ask("/subsz?subs=1&acc=X")).document["total"] == 0

    with_clients(check)


def test_accounts_and_their_statistics() -> None:
    async def check(server: Monitored, links: list[RawLink]) -> None:
        assert (await server.ask("/accountz")).document["accounts"] == ["$G", "$SYS"]
        detail = (await server.ask("/accountz?acc=$G")).document["account_detail"]
        assert (detail["client_connections"], detail["subscriptions"], detail["jetstream_enabled"]) == (3, 4, False)
        statistics = (await server.ask("/accstatz")).document["account_statz"]
        assert [(one["acc"], one["conns"], one["received"]["msgs"]) for one in statistics] == [("$G", 3, 3)]
        assert len((await server.ask("/accstatz?unused=1")).document["account_statz"]) == 2
        links[0].close()
        while (await server.ask("/varz")).document["connections"] == 3:
            pass
        (left,) = (await server.ask("/accstatz")).document["account_statz"]
        assert (left["conns"], left["received"]["msgs"]) == (2, 3), "what a client did stays with its account"

    with_clients(check)


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/connz?sort=bad", 400, "invalid sorting option: bad"),
        ("/connz?state=bad", 400, "Error decoding state for bad"),
        ("/connz?limit=x", 400, "Error decoding int for 'limit': strconv.Atoi: parsing \"x\": invalid syntax"),
        ("/connz?limit=99999999999999999999", 400, "value out of range"),
        ("/connz?subs=maybe", 400, "Error decoding boolean for 'subs'"),
        ("/connz?sort=stop", 400, "sort by stop only valid on closed connections"),
        ("/subsz?test=a.*", 400, "invalid test subject"),
        ("/accountz?acc=X", 400, "Account X does not exist"),
        ("/healthz?stream=S", 400, '"account\\" must not be empty when checking stream health'),
        ("/healthz?account=$G&consumer=S", 400, '"stream\\" must not be empty when checking consumer health'),
        ("/nope", 404, "404 page not found"),
        ("/../varz", 307, '<a href="/varz">Temporary Redirect</a>'),
        ("/varz/", 404, "404 page not found"),
        ("//varz", 307, '<a href="/varz">Temporary Redirect</a>'),
    ],
)
def test_what_is_asked_wrongly_is_refused(path: str, status: int, text: str) -> None:
    async def check(server: Monitored, links: list[RawLink]) -> None:
        answer = await server.ask(path)
        assert answer.status == status
        assert text in answer.body.decode()
        assert (await server.ask("/healthz")).body == b'{"status":"ok"}'

    with_clients(check)


def test_a_base_path_stands_before_all_pages() -> None:
    async def main() -> None:
        async with monitored(base_path="/nats") as server:
            assert (await server.ask("/nats/varz")).document["http_base_path"] == "/nats"
            assert (await server.ask("/varz")).status == 404
            assert (await server.ask("/natsvarz")).status == 404
            listed = await server.ask("/nats/")
            assert b'href="/nats/connz"' in listed.body
            assert listed.content_type.startswith("text/html")

    asyncio.run(main())


def test_jsz_and_healthz_know_the_streams(tmp_path: Path) -> None:
    async def main() -> None:
        async with monitored(jetstream=True, store_dir=tmp_path) as server:
            link = await asyncio.to_thread(work, server.broker.port)
            page = (await server.ask("/jsz")).document
            assert (page["streams"], page["consumers"], page["messages"], page["total"]) == (1, 1, 1, 1)
            assert "account_details" not in page
            page = (await server.ask("/jsz?consumers=1")).document
            stream = page["account_details"][0]["stream_detail"][0]
            assert (stream["name"], stream["state"]["messages"]) == ("S", 1)
            assert stream["consumer_detail"][0]["name"] == "D"
            assert "config" not in stream
            for path, status in (
                ("?account=$G&stream=S&consumer=D", 200),
                ("?account=$G&stream=S&consumer=NOPE", 404),
                ("?account=$G&stream=NOPE", 404),
                ("?account=NOPE", 404),
                ("?js-enabled-only=true", 200),
                ("?js-server-only=true", 200),
            ):
                assert (await server.ask(f"/healthz{path}")).status == status, path
            link.close()

    asyncio.run(main())


def store(link: RawLink, payload: bytes) -> None:
    """Publish to s.x and wait for the acknowledgement: the next message is in a batch of its own, however slow the disk."""
    link.send(b"SUB stored 77\r\nUNSUB 77 1\r\nPUB s.x stored %d\r\n%b\r\n" % (len(payload), payload))
    while not link.receive_line().startswith(b"MSG stored 77 "):
        pass
    link.receive_line()
    link.settle()


def damage(directory: Path, payload: bytes, *, on_reading: bool = False) -> None:
    """Change a bit of the first message that says so, in the log that a broker has left there; found at the start, or on
    reading only."""
    (segment,) = directory.rglob("*.log")
    stored = bytearray(segment.read_bytes())
    stored[stored.index(payload)] ^= 1
    segment.write_bytes(stored)
    for index in directory.rglob("log.index") if not on_reading else ():  # of a clean stop
        index.unlink()


def test_healthz_stays_ready_and_tells_what_a_stream_has_lost(tmp_path: Path) -> None:
    async def main() -> None:
        async with monitored(jetstream=True, store_dir=tmp_path) as server:
            link = await asyncio.to_thread(work, server.broker.port)
            for _ in range(3):
                await asyncio.to_thread(store, link, b"pr3c1ous!")
            assert (await server.ask("/healthz")).status == 200
            link.close()
        damage(tmp_path, b"pr3c1ous!")
        async with monitored(jetstream=True, store_dir=tmp_path) as server:
            answer = await server.ask("/healthz")
            assert (answer.status, answer.document["status"]) == (200, "ok")
            (warning,) = answer.document["warnings"]
            assert warning.startswith("JetStream stream '$G > S': corrupt: ")
            loss, note = (await server.ask("/jsz")).document["findings"]
            assert (loss["stream"], loss["lost"], loss["severity"]) == ("S", 1, "loss")
            assert (note["lost"], note["severity"]) == (0, "warning")
            metrics = (await server.ask("/metrics")).body.decode()
            assert "jetstream_server_lost_messages{" in metrics
            assert (await server.ask("/healthz?js-enabled-only=true")).document == {"status": "ok"}

    asyncio.run(main())


def test_damage_that_reading_meets_is_an_event_and_a_warning(tmp_path: Path) -> None:
    async def main() -> None:
        async with monitored(jetstream=True, store_dir=tmp_path) as server:
            link = await asyncio.to_thread(work, server.broker.port)
            await asyncio.to_thread(store, link, b"pr3c1ous!")
            link.close()
        damage(tmp_path, b"pr3c1ous!", on_reading=True)
        async with monitored(jetstream=True, store_dir=tmp_path) as server:
            assert (await server.ask("/healthz")).document == {"status": "ok"}
            assert server.broker.jetstreams["$G"].streams["S"].contents.load(2) is None
            (event,) = (await server.ask("/eventz?kind=damage_found")).document["events"]
            assert (event["account"], event["stream"], event["lost"]) == ("$G", "S", 1)
            assert len((await server.ask("/healthz")).document["warnings"]) == 1
            assert (await server.ask("/jsz")).document["messages"] == 1

    asyncio.run(main())


def remove_documents(directory: Path) -> None:
    for copy in directory.rglob("stream.?"):
        copy.unlink()


def test_healthz_is_unavailable_for_a_stream_that_could_not_be_recovered(tmp_path: Path) -> None:
    async def main() -> None:
        async with monitored(jetstream=True, store_dir=tmp_path) as server:
            (await asyncio.to_thread(work, server.broker.port)).close()
        remove_documents(tmp_path)
        async with monitored(jetstream=True, store_dir=tmp_path) as server:
            for path in ("", "?account=$G", "?account=$G&stream=S", "?details=true"):
                answer = await server.ask(f"/healthz{path}")
                assert (answer.status, answer.document["status"]) == (503, "unavailable")
                assert answer.document["error"].startswith("JetStream stream '$G > S' could not be recovered")
            (finding,) = (await server.ask("/jsz")).document["findings"]
            assert (finding["stream"], finding["severity"]) == ("S", "unavailable")
            assert "jetstream_server_unavailable_streams{" in (await server.ask("/metrics")).body.decode()
            for alive in ("js-enabled-only", "js-server-only"):
                assert (await server.ask(f"/healthz?{alive}=true")).status == 200

    asyncio.run(main())


@pytest.mark.interop
def test_nats_server_says_the_same_of_a_stream_that_it_cannot_recover(tmp_path: Path) -> None:
    with monitored_nats_server(tmp_path) as (port, _):
        work(port).close()
    for document in tmp_path.rglob("streams/*/meta.inf"):
        document.write_bytes(b"x")
    with monitored_nats_server(tmp_path) as (_, http):
        answer = ask(http, "/healthz")
        assert answer.status == 503
        assert answer.document["error"] == "JetStream stream '$G > S' could not be recovered"


def test_pages_show_how_long_the_disk_takes_what_was_refused_and_the_room_that_is_left(tmp_path: Path) -> None:
    async def main() -> None:
        async with monitored(jetstream=True, store_dir=tmp_path) as server:
            (await asyncio.to_thread(work, server.broker.port)).close()
            shown = (await server.ask("/varz")).document["jetstream"]["stats"]
            writes = shown["writes"]
            assert (writes["batches"], writes["refused"], writes["waiting_bytes"]) == (1, 0, 0)
            assert 0 < writes["sync_p50"] <= writes["sync_p99"]
            assert 0 < writes["ack_p50"] <= writes["ack_p99"]
            assert 0 < shown["disk"]["free"] <= shown["disk"]["size"]
            page = (await server.ask("/jsz?streams=1")).document
            assert page["writes"]["batches"] == 1
            of_stream = page["account_details"][0]["stream_detail"][0]["writes"]
            assert of_stream == {"refused": 0, "waiting_messages": 0, "waiting_bytes": 0}
            metrics = (await server.ask("/metrics")).body.decode()
            for name in ("gnatsd_varz_jetstream_stats_writes_sync_p99", "gnatsd_varz_jetstream_stats_disk_free",
                         "jetstream_stream_refused_writes"):  # fmt: skip
                assert f"{name}{{" in metrics
            assert (await server.ask("/healthz")).document == {"status": "ok"}
            service = server.broker.jetstreams["$G"]
            assert service._watches is not None
            service._watches[0].note(Room(1, 1000))
            answer = await server.ask("/healthz")
            assert (answer.status, answer.document["status"]) == (200, "ok")
            assert answer.document["warnings"] == ["JetStream store of account '$G': 1 of 1000 bytes are left"]

    asyncio.run(main())


def test_without_jetstream_jsz_says_so() -> None:
    async def main() -> None:
        async with monitored() as server:
            page = (await server.ask("/jsz")).document
            assert (page["disabled"], page["streams"]) == (True, 0)
            assert (await server.ask("/healthz?js-enabled-only=1")).status == 200

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["token", "user"])
def test_secrets_are_in_no_page(kind: str, tmp_path: Path) -> None:
    secret = "hunter2secret"
    shown: dict[str, object] = {"auth_token": secret} if kind == "token" else {"user": "ann", "pass": secret}
    authorization = (
        AuthorizationOptions(token=secret)
        if kind == "token"
        else AuthorizationOptions(users=(UserOptions(username="ann", password=secret),))
    )

    async def main() -> None:
        async with monitored(authorization=authorization, jetstream=True, store_dir=tmp_path) as server:
            link = await server.dial(**shown)
            (await server.dial(**shown)).close()
            paths = [
                "/", "/varz", "/connz?auth=1&subs=detail", "/connz?auth=1&state=closed", "/subsz?subs=1", "/accountz?acc=$G",
                "/accstatz", "/jsz?config=1&consumers=1", "/healthz", "/metrics", "/routez",
            ]  # fmt: skip
            answers = {path: await server.ask(path) for path in paths}
            assert {path: answer.status for path, answer in answers.items() if answer.status != 200} == {}
            assert [path for path, answer in answers.items() if secret.encode() in answer.body] == []
            if kind == "user":
                assert answers["/connz?auth=1&subs=detail"].document["connections"][0]["authorized_user"] == "ann"
            link.close()

    asyncio.run(main())


def test_pages_are_json_that_a_browser_may_read_from_anywhere() -> None:
    async def main() -> None:
        async with monitored() as server:
            answer = await server.ask("/varz")
            assert answer.content_type == "application/json"
            assert json.loads(answer.body)["version"] == "2.15.1"

    asyncio.run(main())


def test_ipqueuesz_shows_the_queues_that_we_have_under_nats_servers_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with monitored(jetstream=True, store_dir=tmp_path) as server:
            link = await asyncio.to_thread(work, server.broker.port)
            assert (await server.ask("/ipqueuesz")).document == {}, "nothing waits"
            stream = "[ACC:$G] stream 'S' messages"
            everything = {"JetStream API queue": {"pending": 0}, stream: {"pending": 0}}
            assert (await server.ask("/ipqueuesz?all=1")).document == everything
            assert (await server.ask("/ipqueuesz?all=1&queues=stream")).document == {stream: {"pending": 0}}
            monkeypatch.setattr(Stream, "waiting", (3, 30))
            assert (await server.ask("/ipqueuesz")).document == {stream: {"pending": 3}}
            link.close()

    asyncio.run(main())
