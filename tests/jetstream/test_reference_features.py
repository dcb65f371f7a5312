"""What JetStream clients are built on, held against the real nats-server message by message: pull and push deliveries
with their statuses, flow control, deliver groups, direct gets in batches, pause, limits per subject, roll-ups, sealed
streams, an account's limits; and the server's own error for what is not done here.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.headwater_server import start_headwater
from support.jetstream_pair import API, ask, compare, receive, written
from support.jetstream_twins import Publish, Servers
from support.nats_server import start_nats_server

from headwater.client.blocking import BlockingClient
from headwater.client.client import connect
from headwater.client.options import ClientOptions

pytestmark = pytest.mark.interop

SECOND = 1_000_000_000

LIMITED = """
jetstream { store_dir: "%s" }
accounts { A { users: [{ user: a, password: a }]
    jetstream { max_file: 100000, max_mem: 6000, max_streams: 3, max_consumers: 3, max_ack_pending: 100 } } }
"""


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The real server's, and ours."""
    directory = tmp_path_factory.mktemp("features")
    with (
        start_nats_server(directory / "real") as real,
        start_headwater(directory / "ours", "-js", "-sd", str(directory / "ours" / "js")) as ours,
    ):
        yield [real.url, ours.url]


@pytest.fixture
def clients(urls: list[str]) -> Iterator[list[BlockingClient]]:
    """A client of each server, the real one first."""
    made = [BlockingClient.connect(ClientOptions(servers=[url])) for url in urls]
    yield made
    for client in made:
        client.close()


def fill(clients: list[BlockingClient], name: str, count: int = 6, **config: object) -> None:
    """A stream with messages 0, 1, ... on the subjects `name.0`, `name.1`, `name.2` in turn."""
    low = name.lower()
    steps: list[tuple[str, object]] = [
        (f"{API}STREAM.CREATE.{name}", {"name": name, "subjects": [f"{low}.*"], **config})
    ]
    compare(clients, steps + [(f"{low}.{number % 3}", b"%d" % number) for number in range(count)])


def make_consumer(clients: list[BlockingClient], stream: str, name: str, **config: object) -> None:
    body = {"stream_name": stream, "config": {"name": name, **config}}
    compare(clients, [(f"{API}CONSUMER.CREATE.{stream}.{name}", body)])


def receive_both(urls: list[str], subject: str, request: object, last: int, **options: str) -> None:
    payload = request if isinstance(request, bytes) else json.dumps(request).encode()
    real, ours = (written(asyncio.run(receive(url, subject, payload, last, **options))) for url in urls)
    unnamed = [
        [("inbox" if s.startswith("_INBOX") else s, *rest) for s, *rest in received] for received in (real, ours)
    ]
    assert unnamed[1] == unnamed[0]
    assert ours


@pytest.mark.parametrize(
    "request_body",
    [
        {"batch": 3, "no_wait": True},
        {"batch": 50, "no_wait": True},
        {"batch": 50, "expires": SECOND // 5},
        {"batch": 50, "max_bytes": 100, "expires": SECOND // 5},
        {"batch": 2, "max_bytes": 10, "expires": SECOND // 5},
        {"batch": 1, "expires": SECOND, "idle_heartbeat": SECOND},
        b"2",
        b"nonsense",
    ],
)
@pytest.mark.parametrize("ack_policy", ["none", "explicit"])
def test_a_pull_request_gets_the_same_messages_and_the_same_last_word(
    clients: list[BlockingClient], urls: list[str], request_body: object, ack_policy: str
) -> None:
    for client in clients:
        ask(client, f"{API}STREAM.DELETE.PULL", None)
    fill(clients, "PULL")
    make_consumer(clients, "PULL", "c", ack_policy=ack_policy)
    last = 2 if request_body == b"2" else 1 if request_body == b"nonsense" else 3
    most = 99 if isinstance(request_body, dict) and request_body["batch"] == 50 else last
    receive_both(urls, f"{API}CONSUMER.MSG.NEXT.PULL.c", request_body, most)


def test_a_filtered_consumer_delivers_what_matches_with_what_is_left(
    clients: list[BlockingClient], urls: list[str]
) -> None:
    fill(clients, "FILT", 12)
    make_consumer(clients, "FILT", "f", ack_policy="explicit", filter_subjects=["filt.0", "filt.2"])
    receive_both(urls, f"{API}CONSUMER.MSG.NEXT.FILT.f", {"batch": 20, "no_wait": True}, 99)


@pytest.mark.parametrize("policy", ["all", "last", "last_per_subject", "new", "by_start_sequence"])
def test_every_deliver_policy_starts_where_the_servers_does(
    clients: list[BlockingClient], urls: list[str], policy: str
) -> None:
    name = "POL" + policy.replace("_", "").upper()
    fill(clients, name, 7)
    start = {"opt_start_seq": 4} if policy == "by_start_sequence" else {}
    make_consumer(clients, name, "p", ack_policy="none", deliver_policy=policy, headers_only=True, **start)
    receive_both(urls, f"{API}CONSUMER.MSG.NEXT.{name}.p", {"batch": 20, "no_wait": True}, 99)


def test_a_push_consumer_with_flow_control_delivers_and_asks_alike(
    clients: list[BlockingClient], urls: list[str]
) -> None:
    fill(clients, "PUSH", 5)

    async def listen(url: str) -> object:
        body = {
            "stream_name": "PUSH",
            "config": {
                "name": "push",
                "deliver_subject": "to.push",
                "ack_policy": "none",
                "flow_control": True,
                "idle_heartbeat": SECOND // 2,
            },
        }
        subject = f"{API}CONSUMER.CREATE.PUSH.push"
        return written(await receive(url, subject, json.dumps(body).encode(), 6, listen="to.push"))

    real, ours = (asyncio.run(listen(url)) for url in urls)
    assert ours == real


def test_a_deliver_group_takes_its_messages_through_the_group(clients: list[BlockingClient], urls: list[str]) -> None:
    fill(clients, "GROUP", 4)
    body = {"name": "g", "deliver_subject": "to.group", "deliver_group": "workers", "ack_policy": "explicit"}
    request = {"stream_name": "GROUP", "config": body}
    receive_both(urls, f"{API}CONSUMER.CREATE.GROUP.g", request, 4, listen="to.group", queue="workers")
    compare(clients, [(f"{API}CONSUMER.INFO.GROUP.g", None)])


@pytest.mark.parametrize(
    ("tail", "body"),
    [
        ("", {"seq": 2}),
        ("", {"seq": 99}),
        ("", {"last_by_subj": "dir.1"}),
        ("", {"next_by_subj": "dir.2", "seq": 4}),
        (".dir.0", b""),
        (".dir.none", b""),
        ("", {"seq": 1, "batch": 4}),
        ("", {"seq": 2, "batch": 99}),
        ("", {"seq": 1, "batch": 3, "max_bytes": 120}),
        ("", {"seq": 1, "batch": 9, "max_bytes": 12}),
        ("", {"seq": 1, "batch": 9, "max_bytes": 13, "no_hdr": True}),
        ("", {"seq": 3, "batch": -1}),
        ("", {"seq": 99, "batch": -1}),
        ("", {"batch": -1, "next_by_subj": "dir.1", "seq": 3}),
        ("", {"batch": 3, "next_by_subj": "dir.*", "seq": 2}),
        ("", {"multi_last": ["dir.*"]}),
        ("", {"multi_last": ["dir.0", "dir.2"], "up_to_seq": 5}),
        ("", {"multi_last": ["dir.none"]}),
        ("", b"{}"),
        ("", b""),
        ("", b"{broken"),
    ],
)
def test_direct_gets_are_answered_alike(
    clients: list[BlockingClient], urls: list[str], tail: str, body: object
) -> None:
    if "error" in ask(clients[1], f"{API}STREAM.INFO.DIR", None):
        fill(clients, "DIR", 9, allow_direct=True)
    batched = isinstance(body, dict) and ("batch" in body or "multi_last" in body)
    receive_both(urls, f"{API}DIRECT.GET.DIR{tail}", body, 99 if batched else 1)


def test_limits_per_subject_roll_ups_and_seals_are_kept_alike(clients: list[BlockingClient]) -> None:
    fill(clients, "SUBJ", 9, max_msgs_per_subject=2, allow_rollup_hdrs=True)
    config = {"name": "SUBJ", "subjects": ["subj.*"], "max_msgs_per_subject": 2, "allow_rollup_hdrs": True}
    compare(
        clients,
        [
            (f"{API}STREAM.INFO.SUBJ", {"subjects_filter": ">", "deleted_details": True}),
            (f"{API}STREAM.UPDATE.SUBJ", config | {"max_msgs_per_subject": 1}),
            (f"{API}STREAM.INFO.SUBJ", {"deleted_details": True}),
            (f"{API}STREAM.PURGE.SUBJ", {"filter": "subj.1"}),
            (f"{API}STREAM.MSG.DELETE.SUBJ", {"seq": 7}),
            (f"{API}STREAM.UPDATE.SUBJ", config | {"max_msgs_per_subject": 1, "sealed": True}),
            (f"{API}STREAM.MSG.DELETE.SUBJ", {"seq": 9}),
            (f"{API}STREAM.PURGE.SUBJ", None),
            (f"{API}STREAM.INFO.SUBJ", None),
            ("subj.1", b"no more"),
        ],
    )


def test_a_pause_is_shown_and_ends_alike(clients: list[BlockingClient]) -> None:
    fill(clients, "PAUSE")
    make_consumer(clients, "PAUSE", "p", ack_policy="explicit")
    far = {"pause_until": "2100-01-01T00:00:00Z"}
    for subject, body in ((f"{API}CONSUMER.PAUSE.PAUSE.p", far), (f"{API}CONSUMER.INFO.PAUSE.p", None)):
        real, ours = (ask(client, subject, body) for client in clients)
        for answer in (real, ours):
            assert answer.pop("pause_remaining", 0) > 0
        assert set(ours) == set(real)
        assert ours["paused"] is real["paused"] is True
    compare(clients, [(f"{API}CONSUMER.PAUSE.PAUSE.p", {}), (f"{API}CONSUMER.INFO.PAUSE.p", None)])


def test_what_is_over_leaves_the_same_marker(clients: list[BlockingClient], urls: list[str]) -> None:
    stream = {"name": "MARK", "subjects": ["mark.*"], "subject_delete_marker_ttl": SECOND, "max_msgs_per_subject": 3}
    compare(clients, [(f"{API}STREAM.CREATE.MARK", stream), ("mark.0", b"stays")])

    async def listen(url: str) -> object:
        async with await connect(url) as client:
            for subject, ttl in (("mark.1", "1s"), ("mark.2", "never"), ("mark.0", "1"), ("mark.1", "900ms")):
                headers = {"Nats-TTL": ttl, "Other": "kept"}
                await client.request(subject, b"x", headers=headers)
        config = {"name": "marks", "deliver_subject": "to.marks", "ack_policy": "none"}
        body = json.dumps({"stream_name": "MARK", "config": config}).encode()
        return written(await receive(url, f"{API}CONSUMER.CREATE.MARK.marks", body, 5, listen="to.marks"))

    real, ours = (asyncio.run(listen(url)) for url in urls)
    assert ours == real
    compare(clients, [(f"{API}STREAM.DELETE.MARK", None)])


def test_an_accounts_limits_are_enforced_in_the_same_words(tmp_path: Path) -> None:
    """The same refusals in the same places: what is reserved, what is stored, how many there are."""
    for name in ("real", "ours"):
        (tmp_path / f"{name}.conf").write_text(LIMITED % (tmp_path / name / "js"))
    with (
        start_nats_server(tmp_path / "real", "-c", str(tmp_path / "real.conf"), jetstream=False) as real,
        start_headwater(tmp_path / "ours", "-c", str(tmp_path / "ours.conf")) as ours,
    ):
        made = [
            BlockingClient.connect(ClientOptions(servers=[one.url], user="a", password="a")) for one in (real, ours)
        ]
        stream = {"name": "S", "subjects": ["s"], "storage": "file"}
        memory = {"name": "M", "subjects": ["m"], "storage": "memory", "max_bytes": 5000}
        compare(
            made,
            [
                (f"{API}INFO", None),
                (f"{API}STREAM.CREATE.S", stream),
                (f"{API}STREAM.CREATE.S", stream | {"max_bytes": 99_999_999}),
                (f"{API}STREAM.CREATE.M", memory),
                *[("s", b"x" * 20_000)] * 6,
                ("s", b"x" * 19_000),
                ("s", b"x"),
                *[("m", b"x" * 2_000)] * 4,
                (f"{API}STREAM.CREATE.T", {"name": "T", "subjects": ["t"], "max_bytes": 1000}),
                (f"{API}STREAM.CREATE.U", {"name": "U", "subjects": ["u"], "max_bytes": 1000}),
                (f"{API}STREAM.UPDATE.S", stream | {"max_bytes": 99_999_999}),
                *[
                    (
                        f"{API}CONSUMER.CREATE.S.c{number}",
                        {"stream_name": "S", "config": {"name": f"c{number}", "ack_policy": "explicit"}},
                    )
                    for number in range(4)
                ],
                (
                    f"{API}CONSUMER.CREATE.S.d",
                    {"stream_name": "S", "config": {"name": "d", "ack_policy": "explicit", "max_ack_pending": 500}},
                ),
            ],
        )
        for client in made:
            client.close()


def test_a_stream_made_again_without_naming_its_storage_is_judged_alike(tmp_path: Path) -> None:
    for name in ("real", "ours"):
        (tmp_path / f"{name}.conf").write_text(LIMITED % (tmp_path / name / "js"))
    with (
        start_nats_server(tmp_path / "real", "-c", str(tmp_path / "real.conf"), jetstream=False) as real,
        start_headwater(tmp_path / "ours", "-c", str(tmp_path / "ours.conf")) as ours,
    ):
        made = [
            BlockingClient.connect(ClientOptions(servers=[one.url], user="a", password="a")) for one in (real, ours)
        ]
        steps: list[tuple[str, object]] = [
            (f"{API}STREAM.CREATE.NEW", {"name": "NEW", "subjects": ["new"], "max_bytes": 99_999_999})
        ]
        for storage in ("file", "memory"):
            stream = {"name": "S", "subjects": ["s"]}
            steps += [
                (f"{API}STREAM.CREATE.S", stream | {"storage": storage, "max_bytes": 1000}),
                *[
                    (f"{API}STREAM.{verb}.S", stream | {"max_bytes": most})
                    for verb in ("CREATE", "UPDATE")
                    for most in (1000, 2000, 99_999_999)
                ],
                (f"{API}STREAM.DELETE.S", None),
            ]
        compare(made, steps)
        for client in made:
            client.close()


def test_as_many_deliveries_as_waits_are_enough_alike(clients: list[BlockingClient]) -> None:
    fill(clients, "WAITS", 0)
    for most in (-1, 0, 1, 2, 3, 4):
        waits = {"ack_policy": "explicit", "max_deliver": most, "backoff": [SECOND, 2 * SECOND, 3 * SECOND]}
        make_consumer(clients, "WAITS", f"w{most}", **waits)


@pytest.mark.parametrize("wish", [{}, {"cluster": ""}, {"cluster": "east"}, {"tags": ["ssd"]}, {"preferred": "other"}])
def test_a_wish_where_to_live_is_taken_alike(clients: list[BlockingClient], wish: dict[str, object]) -> None:
    compare(
        clients,
        [
            (f"{API}STREAM.CREATE.WISH", {"name": "WISH", "subjects": ["wish"], "placement": wish}),
            (f"{API}STREAM.INFO.WISH", None),
            (f"{API}STREAM.DELETE.WISH", None),
        ],
    )


def test_a_stream_names_its_server_as_leader(tmp_path: Path) -> None:
    (tmp_path / "named.conf").write_text(
        """
        server_name: alone
        jetstream { store_dir: "%s" }
        accounts { A { jetstream: enabled, users: [{ user: a, password: a }] } }
    """
        % (tmp_path / "js")
    )
    with start_headwater(tmp_path, "-c", str(tmp_path / "named.conf")) as server:
        client = BlockingClient.connect(ClientOptions(servers=[server.url], user="a", password="a"))
        ask(client, f"{API}STREAM.CREATE.LED", {"name": "LED", "subjects": ["led"]})
        assert ask(client, f"{API}STREAM.INFO.LED", None)["cluster"] == {"leader": "alone"}
        client.close()


def test_requests_for_backups_are_refused_alike(clients: list[BlockingClient]) -> None:
    snapshot, restore = f"{API}STREAM.SNAPSHOT.SNAP", f"{API}STREAM.RESTORE.SNAP"
    config = {"name": "SNAP", "subjects": ["snap"]}
    refused: list[tuple[str, object]] = [
        (f"{API}STREAM.SNAPSHOT.NOBODY", {"deliver_subject": "snapshot"}),
        (f"{API}STREAM.CREATE.SNAP", config),
        (snapshot, {}),
        (snapshot, None),
        (snapshot, {"deliver_subject": "a b"}),
        (restore, {"config": config, "state": {}}),
        (restore, {"config": {**config, "name": "OTHER"}, "state": {}}),
        (restore, {}),
    ]
    compare(clients, refused)


@pytest.mark.parametrize(
    ("verb", "config"),
    [
        ("STREAM.CREATE.ND", {"num_replicas": 3}),
        ("STREAM.CREATE.ND", {"num_replicas": 9}),
        ("STREAM.CREATE.ND", {"retention": "sideways"}),
        ("STREAM.CREATE.ND", {"discard_new_per_subject": True}),
        ("STREAM.CREATE.ND", {"mirror": {"name": "X"}, "subjects": ["nd"]}),
        ("STREAM.CREATE.ND", {"max_age": -1}),
    ],
)
def test_what_the_server_refuses_is_refused_with_its_own_error(
    clients: list[BlockingClient], verb: str, config: dict[str, object]
) -> None:
    real, ours = (ask(client, API + verb, {"name": "ND", "subjects": ["nd"], **config}) for client in clients)
    assert ours["error"]["err_code"] == real["error"]["err_code"]


def test_an_interest_stream_republishes_what_a_consumer_wants_alike(urls: list[str]) -> None:
    async def republished(url: str) -> list[tuple[str, bytes]]:
        async with asyncio.timeout(30), await connect(url) as client:
            stream = {"name": "KEEN", "subjects": ["keen.>"], "retention": "interest"}
            stream["republish"] = {"src": ">", "dest": "again.>"}  # type: ignore[assignment]
            await client.request(f"{API}STREAM.CREATE.KEEN", json.dumps(stream).encode())
            consumer = {"stream_name": "KEEN", "config": {"durable_name": "c", "filter_subject": "keen.b"}}
            found = []
            async with await client.subscribe("again.>") as subscription:
                await client.request("keen.b", b"1")  # there is no consumer yet
                await client.request(f"{API}CONSUMER.DURABLE.CREATE.KEEN.c", json.dumps(consumer).encode())
                for subject in ("keen.a", "keen.b"):
                    await client.request(subject, b"2")
                async for message in subscription:
                    found.append((message.subject, message.data))
                    if message.subject == "again.keen.b" and message.data == b"2":
                        return found
        raise AssertionError("the subscription ended")

    real, ours = (asyncio.run(republished(url)) for url in urls)
    assert ours == real == [("again.keen.b", b"2")]


def test_acks_of_what_is_not_delivered_now_are_answered_by_neither(urls: list[str]) -> None:
    with Servers(*(int(url.rpartition(":")[2]) for url in urls)).twins() as twins:
        twins.stream("KNOWN")
        twins.publish(*(Publish("known.a", payload=b"%d" % number) for number in range(3)))
        config = {"name": "c", "durable_name": "c", "ack_policy": "explicit"}
        twins.api("CONSUMER.CREATE.KNOWN.c", {"stream_name": "KNOWN", "config": config})
        twins.pull("KNOWN.c", "box", batch=2)
        twins.pulled("box"), twins.pulled("box")
        twins.api("CONSUMER.RESET.KNOWN.c", {"seq": 1})
        twins.pull("KNOWN.c", "again", batch=1)
        twins.pulled("again")
        silent = [(sequence, word) for sequence in (2, 3, 99) for word in ("", "+ACK", "+OK", "+TERM", "+TERM why")]
        answered = [(2, "-NAK"), (2, "+WPI"), (3, "+WPI"), (1, "+ACK"), (1, "+TERM")]
        for twin in twins.both:
            for sequence, word in silent + answered:
                step = Publish(f"$JS.ACK.KNOWN.c.1.{sequence}.{sequence}.1690000000000000000.0", payload=word.encode())
                twin.send(step, f"_INBOX.twin.said.{sequence}{word.replace(' ', '_')}")
            for sequence, word in answered:
                assert twin.next_on(f"_INBOX.twin.said.{sequence}{word}").data == b""
            assert twin.taken("_INBOX.twin.said.") == []
        assert twins.api("CONSUMER.INFO.KNOWN.c")["ack_floor"]["stream_seq"] == 1
