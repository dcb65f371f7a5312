"""Mirrors and sources within one server, ours and the real one: what is refused, what is copied, what INFO says of it."""

import json
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.embedded_broker import EmbeddedBroker
from support.jetstream_pair import API, mask
from support.nats_server import start_nats_server

from headwater.client.sync import SyncClient, connect
from headwater.options.broker import BrokerOptions

pytestmark = pytest.mark.interop

PATIENCE = 30.0  # seconds
ORIGIN: dict[str, Any] = {"subjects": ["o.>"], "allow_direct": True, "allow_msg_ttl": True}


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    directory: Path = tmp_path_factory.mktemp("copies")
    options = BrokerOptions(host="127.0.0.1", port=0, jetstream=True, store_dir=directory / "ours")
    with start_nats_server(directory) as real, EmbeddedBroker(options) as ours:
        yield [real.url, ours.url]


@pytest.fixture
def clients(urls: list[str]) -> Iterator[list[SyncClient]]:
    clients = [connect(url) for url in urls]
    yield clients
    for client in clients:
        for name in ask(client, API + "STREAM.NAMES", None)["streams"] or ():
            ask(client, f"{API}STREAM.DELETE.{name}", None)
        client.close()


def ask(client: SyncClient, subject: str, body: object) -> Any:
    payload = b"" if body is None else json.dumps(body).encode()
    return json.loads(client.request(subject, payload, timeout=10.0).data)


def create(client: SyncClient, name: str, **config: Any) -> Any:
    return ask(client, f"{API}STREAM.CREATE.{name}", {"name": name, **config})


def make_origin(client: SyncClient) -> None:
    assert "error" not in create(client, "O", **ORIGIN)


def both(clients: list[SyncClient], name: str, **config: Any) -> None:
    """A stream on both servers, which say the same about it."""
    real, ours = (masked(create(client, name, **config)) for client in clients)
    assert ours == real


def masked(answer: Any) -> Any:
    """Without what no two servers share: how long ago is a matter of a moment, and so is what is copied by now."""
    answer = mask(answer, {})
    for copied in [answer.get("mirror"), *(answer.get("sources") or ())]:
        if isinstance(copied, dict):
            copied["active"] = min(copied["active"], 0)
    if answer.get("sources"):
        answer["sources"].sort(key=lambda source: str(source["name"]))  # in nats-server in any order
    return answer


def without_moments(answer: Any) -> Any:
    """What CREATE says at once: the real one shows the filter of a mirror later, and ours sooner that there is no answer."""
    for copied in [answer.get("mirror"), *(answer.get("sources") or ())]:
        if isinstance(copied, dict):
            for name in ("filter_subject", "subject_transforms", "error"):
                copied.pop(name, None)
    return answer


def info(client: SyncClient, name: str) -> Any:
    return ask(client, f"{API}STREAM.INFO.{name}", None)


def until_last(client: SyncClient, name: str, last: int) -> Any:
    """INFO of a stream once its last sequence is this."""
    deadline = time.monotonic() + PATIENCE
    while (found := info(client, name))["state"]["last_seq"] != last:
        assert time.monotonic() < deadline, found
        time.sleep(0.005)
    return found


def contents(client: SyncClient, name: str, *, times: bool = False) -> list[tuple[Any, ...]]:
    """Sequence, subject, headers without the identity of the origin, data, and the time, of every message."""
    found = []
    state = info(client, name)["state"]
    for sequence in range(state["first_seq"], state["last_seq"] + 1):
        answer = ask(client, f"{API}STREAM.MSG.GET.{name}", {"seq": sequence})
        if "error" in answer:
            continue
        message = answer["message"]
        lines = b64decode(message.get("hdrs", "")).decode().split("\r\n")
        lines = [line.rpartition(" ")[0] if line.startswith("Nats-Stream-Source") else line for line in lines]
        row = message["seq"], message["subject"], lines, b64decode(message.get("data", ""))
        found.append((*row, message["time"]) if times else row)
    return found


def publish(client: SyncClient, subject: str, data: str, headers: dict[str, str] | None = None) -> Any:
    return json.loads(client.request(subject, data.encode(), headers=headers, timeout=10.0).data)


MIRRORS: list[dict[str, Any]] = [
    {"mirror": {"name": "O"}, "subjects": ["b"]},
    {"mirror": {"name": "O"}, "sources": [{"name": "O"}]},
    {"mirror": {"name": "O", "opt_start_seq": 2, "opt_start_time": "2026-01-01T00:00:00Z"}},
    {"mirror": {"name": "O"}, "first_seq": 5},
    {"mirror": {"name": "nope"}},
    {"mirror": {"name": "a.b"}},
    {"mirror": {"name": ""}},
    {"mirror": {"name": "O", "filter_subject": "o..x"}},
    {"mirror": {"name": "O", "filter_subject": "zz.>"}},
    {"mirror": {"name": "O", "filter_subject": "o.1", "subject_transforms": [{"src": "o.>", "dest": "z.>"}]}},
    {"mirror": {"name": "O", "subject_transforms": [{"src": "o.1", "dest": "z.1"}, {"src": "o.*", "dest": "z.*"}]}},
    {"mirror": {"name": "O", "subject_transforms": [{"src": "o..", "dest": "z"}]}},
    {"mirror": {"name": "O", "subject_transforms": [{"src": "o.*", "dest": "z.{{wildcard(2)}}"}]}},
    {"mirror": {"name": "O"}, "allow_atomic": True},
    {"mirror": {"name": "O"}, "allow_batched": True},
    {"mirror": {"name": "O"}, "allow_msg_schedules": True},
    {"mirror": {"name": "O"}, "allow_msg_counter": True},
    {"mirror": {"name": "O"}, "max_msg_size": 10},
    {"mirror": {"name": "B"}},
    {"mirror": {"name": "O"}, "subject_transform": {"src": "o.>", "dest": "p.>"}},
    {"mirror_direct": True, "subjects": ["b19"]},
    {"mirror": {"name": "O"}, "discard": "new", "discard_new_per_subject": True, "max_msgs_per_subject": 1},
    {"mirror": {"name": "O"}, "retention": "workqueue"},
    {"mirror": {"name": "O"}, "deny_delete": True, "sealed": False},
    {"mirror": {"name": "O", "opt_start_seq": 5}},
    {"mirror": {"name": "O", "opt_start_time": "2026-01-01T00:00:00.500+01:00"}},
    {"mirror": {"name": "O"}, "subject_delete_marker_ttl": 2_000_000_000},
    {"mirror": {"name": "O", "external": {"api": "$JS.X.API", "deliver": ""}}},
    {"mirror": {"name": "O", "external": {"api": "$JS.API", "deliver": "d"}}},
    {"mirror": {"name": "O", "external": {"api": "", "deliver": ""}}},
    {"mirror": {"name": "O", "external": {"api": "a.*", "deliver": ""}}},
    {"mirror": {"name": "O", "external": {"api": "$JS.X.API", "deliver": "d.>"}}},
    {"mirror": {"name": "O", "consumer": {"name": "dur"}}},
    {"mirror": {"name": "O", "consumer": {"name": "dur", "deliver_subject": "dd"}}},
    {"mirror": {"name": "O", "consumer": {}}},
]
SOURCES: list[dict[str, Any]] = [
    {"sources": [{"name": "O"}, {"name": "O"}]},
    {"sources": [{"name": "O", "filter_subject": "o.1"}, {"name": "O", "filter_subject": "o.2"}]},
    {"sources": [{"name": "O", "filter_subject": "o.1"}, {"name": "O", "filter_subject": "o.*"}]},
    {"sources": [{"name": "nope"}]},
    {"sources": [{"name": "a.b"}]},
    {"sources": [{"name": ""}]},
    {"sources": [{"name": "O", "filter_subject": "o.1", "subject_transforms": [{"src": "o.>", "dest": "z.>"}]}]},
    {"sources": [{"name": "O", "subject_transforms": [{"src": "o.1", "dest": "z.1"}, {"src": "o.*", "dest": "z.*"}]}]},
    {"sources": [{"name": "O", "subject_transforms": [{"src": "o..", "dest": "z"}]}]},
    {"sources": [{"name": "O", "subject_transforms": [{"src": "o.*", "dest": "z.{{wildcard(2)}}"}]}]},
    {"sources": [{"name": "O"}], "max_msg_size": 10},
    {"sources": [{"name": "B"}], "subjects": ["b10"]},
    {"sources": [{"name": "O"}], "subjects": ["o.1"]},
    {"sources": [{"name": "O", "opt_start_seq": 3}]},
    {"sources": [{"name": "O", "opt_start_seq": 3, "opt_start_time": "2026-01-01T00:00:00Z"}]},
    {"sources": [{"name": "O"}], "allow_msg_schedules": True},
    {"sources": [{"name": "O", "filter_subject": "o.."}]},
    {"sources": [{"name": "O", "filter_subject": "zz.>"}]},
    {"sources": [{"name": "O", "consumer": {"name": "dur2"}}]},
    {"sources": []},
]
REST: list[dict[str, Any]] = [
    {"subjects": ["t.*"], "subject_transform": {"src": "t2..", "dest": "x"}},
    {"subjects": ["t.*"], "subject_transform": {"src": "t.*", "dest": "x.{{wildcard(3)}}"}},
    {"subjects": ["t.*"], "subject_transform": {"src": "t.*", "dest": "x.{{nope(1)}}"}},
    {"subjects": ["t.*"], "subject_transform": {"src": "t.*", "dest": "x.{{partition()}}"}},
    {"subjects": ["t.*"], "subject_transform": {"src": "t.*", "dest": "x.*"}},
    {"subjects": ["t.*"], "subject_transform": {"src": "t.*", "dest": "x.>"}},
    {"subjects": ["t.*"], "subject_transform": {"src": "", "dest": ""}},
    {"subjects": ["t.*"], "subject_transform": {"src": "t.*", "dest": "$JS.API.>"}},
    {"subjects": ["t.*"], "persist_mode": "async"},
    {"subjects": ["t.*"], "persist_mode": "async", "storage": "memory"},
    {"subjects": ["t.*"], "persist_mode": "default"},
    {"subjects": ["t.*"], "persist_mode": "x"},
    {"subjects": ["t.*"], "placement": {"cluster": "c", "tags": ["a"]}},
    {"subjects": ["t.*"], "placement": {}},
    {"subjects": ["t.*"], "placement": {"cluster": ""}},
    {"subjects": ["t.*"], "placement": {"preferred": "p"}},
    {"subjects": ["t.*"], "compression": "zip"},
]


@pytest.mark.parametrize("config", MIRRORS + SOURCES + REST, ids=str)
def test_a_configuration_is_accepted_or_refused_as_by_the_real_one(
    clients: list[SyncClient], config: dict[str, Any]
) -> None:
    both(clients, "O", **ORIGIN)
    real, ours = (without_moments(masked(create(client, "B", **config))) for client in clients)
    assert ours == real


@pytest.mark.parametrize(
    "config",
    [
        {"mirror": {"name": "O", "opt_start_time": "noon"}, "allow_atomic": True},
        {"sources": [{"name": "O", "opt_start_time": ""}]},
    ],
    ids=str,
)
def test_a_start_time_that_is_none_is_refused_before_all_else(
    clients: list[SyncClient], config: dict[str, Any]
) -> None:
    real, ours = (create(client, "B", **config)["error"] for client in clients)
    assert (ours["code"], ours["err_code"]) == (real["code"], real["err_code"]) == (400, 10025)


def test_a_ring_is_told_before_a_stream_that_is_not_there(clients: list[SyncClient]) -> None:
    both(clients, "O", sources=[{"name": "B"}])
    config = {"name": "B", "sources": [{"name": "O"}]}
    real, ours = (ask(client, f"{API}STREAM.UPDATE.B", config)["error"] for client in clients)
    assert ours == real


def test_a_name_that_is_taken_is_told_before_a_filter_that_is_invalid(clients: list[SyncClient]) -> None:
    both(clients, "O", **ORIGIN)
    both(clients, "B", sources=[{"name": "O", "filter_subject": "o.1"}])
    both(clients, "B", sources=[{"name": "O", "filter_subject": "o..1"}])


def fill(client: SyncClient) -> None:
    for number in range(1, 11):
        headers = {"X": "1", "Nats-Msg-Id": f"i{number}", "Nats-Expected-Stream": "O"} if number % 2 else None
        publish(client, f"o.{number % 3}", f"m{number}", headers)
    assert ask(client, API + "STREAM.MSG.DELETE.O", {"seq": 5})["success"]


def test_a_mirror_keeps_sequences_times_headers_and_gaps(clients: list[SyncClient]) -> None:
    reported = []
    for client in clients:
        make_origin(client)
        fill(client)
        create(client, "M", mirror={"name": "O"}, mirror_direct=True)
        found = masked(until_last(client, "M", 10))
        ours = contents(client, "M", times=True)
        assert [row[0] for row in ours] == [1, 2, 3, 4, 6, 7, 8, 9, 10]
        assert [(*row[:2], row[3], row[4]) for row in ours] == [
            (*row[:2], row[3], row[4]) for row in contents(client, "O", times=True)
        ]
        publish(client, "o.9", "m11")
        until_last(client, "M", 11)
        origin = info(client, "O")["state"]["consumer_count"], ask(client, API + "CONSUMER.NAMES.O", None)["total"]
        reported.append((found["config"], found["state"], found["mirror"], contents(client, "M"), origin))
    assert reported[1] == reported[0]


def test_deletions_and_purges_of_the_origin_stay_there_and_a_promoted_mirror_goes_on(
    clients: list[SyncClient],
) -> None:
    reported = []
    for client in clients:
        make_origin(client)
        fill(client)
        create(client, "M", mirror={"name": "O"})
        until_last(client, "M", 10)
        assert ask(client, API + "STREAM.MSG.DELETE.M", {"seq": 2})["success"]
        assert ask(client, API + "STREAM.PURGE.O", None)["purged"] == 9
        publish(client, "o.9", "later")
        until_last(client, "M", 11)
        other = {"name": "M", "mirror": {"name": "O", "filter_subject": "o.1"}}
        refused = ask(client, API + "STREAM.UPDATE.M", other)["error"]
        promoted = masked(ask(client, API + "STREAM.UPDATE.M", {"name": "M", "subjects": ["mm"]}))
        answer = publish(client, "mm", "own")
        publish(client, "o.9", "not copied")
        again = ask(client, API + "STREAM.UPDATE.M", {"name": "M", "mirror": {"name": "O"}, "subjects": ["mm"]})
        reported.append((refused, promoted, answer, again["error"], contents(client, "M")))
    assert reported[1] == reported[0]


def test_a_filtered_mirror_has_the_matching_sequences_and_a_transform_moves_their_subjects(
    clients: list[SyncClient],
) -> None:
    reported = []
    for client in clients:
        make_origin(client)
        fill(client)
        create(client, "F", mirror={"name": "O", "filter_subject": "o.1"})
        moves = [{"src": "o.1", "dest": "t.one"}, {"src": "o.2", "dest": ""}]
        create(client, "T", mirror={"name": "O", "opt_start_seq": 4, "subject_transforms": moves})
        create(client, "S", mirror={"name": "O"}, subject_transform={"src": "o.*", "dest": "s.{{left(1,1)}}.x"})
        names = {"F": 10, "T": 10, "S": 10}
        rows = [(until_last(client, name, last)["state"], contents(client, name)) for name, last in names.items()]
        for state, _ in rows:
            del state["first_ts"], state["last_ts"]
        reported.append((rows, [masked(info(client, name))["mirror"] for name in names]))
    assert reported[1] == reported[0]


def test_a_source_stamps_what_it_takes_and_goes_on_behind_it(clients: list[SyncClient]) -> None:
    reported = []
    for client in clients:
        create(client, "P1", subjects=["p1.>"])
        create(client, "P2", subjects=["p2.>"])
        for number in range(3):
            publish(client, "p1.a", f"p1-{number}", {"Nats-Msg-Id": f"x{number}", "X": "y"})
            publish(client, "p2.a", f"p2-{number}")
        create(client, "Z", subjects=["z.>"], sources=[{"name": "P1"}])
        until_last(client, "Z", 3)
        both_sources = [{"name": "P1"}, {"name": "P2", "filter_subject": "p2.>", "opt_start_seq": 2}]
        ask(client, API + "STREAM.UPDATE.Z", {"name": "Z", "subjects": ["z.>"], "sources": both_sources})
        until_last(client, "Z", 5)
        publish(client, "z.own", "own")
        before = contents(client, "Z")
        assert ask(client, API + "STREAM.PURGE.Z", None)["purged"] == 6
        publish(client, "p1.a", "after")
        until_last(client, "Z", 7)
        sources = masked(info(client, "Z"))["sources"]
        refused = publish(client, "z.hdr", "x", {"Nats-Stream-Source": "P1 1 > > p1.a"})
        ask(client, API + "STREAM.UPDATE.Z", {"name": "Z", "subjects": ["z.>"], "sources": both_sources[1:]})
        publish(client, "p1.a", "while it is no source")
        ask(client, API + "STREAM.UPDATE.Z", {"name": "Z", "subjects": ["z.>"], "sources": both_sources})
        until_last(client, "Z", 8)
        last = contents(client, "Z")
        moved = [{"name": "P1", "subject_transforms": [{"src": "p1.*", "dest": "zt.{{wildcard(1)}}.x"}]}]
        create(client, "ZT", sources=moved, subject_transform={"src": "zt.>", "dest": "final.>"})
        until_last(client, "ZT", 5)
        create(client, "ZS", sources=[{"name": "ZT"}])
        until_last(client, "ZS", 5)
        rest = contents(client, "ZT"), contents(client, "ZS")
        reported.append((before, sources, refused, last, rest, masked(info(client, "ZT"))["sources"]))
    assert reported[1] == reported[0]


def test_a_mirror_of_a_stream_with_sources_keeps_their_stamps(clients: list[SyncClient]) -> None:
    reported = []
    for client in clients:
        make_origin(client)
        create(client, "Z", sources=[{"name": "O"}])
        publish(client, "o.1", "m1", {"X": "1"})
        until_last(client, "Z", 1)
        create(client, "M", mirror={"name": "Z"})
        until_last(client, "M", 1)
        reported.append((contents(client, "M"), contents(client, "Z")))
    assert reported[1] == reported[0]
    assert reported[1][0] == reported[1][1]


@pytest.mark.parametrize("start", [{"opt_start_seq": 20}, {"opt_start_time": "2100-01-01T00:00:00Z"}], ids=str)
def test_a_mirror_that_begins_at_a_later_message_numbers_from_there_also_when_it_is_promoted_before(
    clients: list[SyncClient], start: dict[str, Any]
) -> None:
    reported = []
    for client in clients:
        make_origin(client)
        fill(client)
        create(client, "M", mirror={"name": "O", **start})
        first = start.get("opt_start_seq", 11)
        state = until_last(client, "M", first - 1)["state"]
        ask(client, API + "STREAM.UPDATE.M", {"name": "M", "subjects": ["mm"]})
        reported.append((mask(state, {}), publish(client, "mm", "own"), contents(client, "M")))
        assert reported[-1][1] == {"stream": "M", "seq": first}
    assert reported[1] == reported[0]


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
@pytest.mark.parametrize("kind", ["mirror", "sources"])
def test_a_queue_is_emptied_into_its_copy(clients: list[SyncClient], retention: str, kind: str) -> None:
    reported = []
    for client in clients:
        create(client, "Q", subjects=["q.>"], retention=retention)
        copied = {"name": "Q"}
        create(client, "C", **{kind: copied if kind == "mirror" else [copied]})
        deadline = time.monotonic() + PATIENCE
        while not ask(client, API + "CONSUMER.NAMES.Q", None)["total"]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for number in range(50):
            publish(client, "q.a", f"{number}")
        until_last(client, "C", 50)
        while info(client, "Q")["state"]["messages"]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        (consumer,) = ask(client, API + "CONSUMER.LIST.Q", None)["consumers"]
        shown = consumer["config"]
        shown["deliver_subject"] = shown["deliver_subject"][:6]
        del shown["metadata"]
        kept = [(row[0], row[1], row[3]) for row in contents(client, "C")]
        ask(client, API + "STREAM.DELETE.C", None)
        while ask(client, API + "CONSUMER.NAMES.Q", None)["total"]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        reported.append((consumer["name"], shown, kept))
    assert reported[1] == reported[0]


def test_a_copy_that_is_full_stops_and_tells_how_much_it_lacks(clients: list[SyncClient]) -> None:
    for client in clients:
        make_origin(client)
        fill(client)
        create(client, "L", sources=[{"name": "O"}], discard="new", max_msgs=4)
        until_last(client, "L", 4)
        ask(
            client, API + "STREAM.UPDATE.L", {"name": "L", "sources": [{"name": "O"}], "discard": "new", "max_msgs": 20}
        )
        until_last(client, "L", 9)
        assert [row[3] for row in contents(client, "L")] == [b"m%d" % n for n in range(1, 11) if n != 5]


@pytest.mark.parametrize("copied", [{"mirror": {"name": "O"}}, {"sources": [{"name": "O"}]}], ids=str)
def test_a_message_that_is_too_large_for_a_copy_holds_it_up_and_is_not_passed_over(
    clients: list[SyncClient], copied: dict[str, Any]
) -> None:
    for client in clients:
        make_origin(client)
        create(client, "L", max_msg_size=200, **copied)
        for data in ("before", "x" * 400, "after"):
            publish(client, "o.x", data)
        until_last(client, "L", 1)
        publish(client, "o.x", "later")
        assert info(client, "L")["state"]["last_seq"] == 1
        ask(client, API + "STREAM.UPDATE.L", {"name": "L", "max_msg_size": 1000, **copied})
        until_last(client, "L", 4)
        assert [row[3] for row in contents(client, "L")] == [row[3] for row in contents(client, "O")]


def test_an_origin_that_comes_later_is_copied_then(clients: list[SyncClient]) -> None:
    ours = clients[1]
    create(ours, "M", mirror={"name": "O"})
    deadline = time.monotonic() + PATIENCE
    while "error" not in (mirror := info(ours, "M")["mirror"]):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert mirror["error"]["err_code"] == 10059
    make_origin(ours)
    fill(ours)
    assert "error" not in until_last(ours, "M", 10)["mirror"]


def test_an_origin_that_was_made_anew_is_sourced_from_its_beginning(clients: list[SyncClient]) -> None:
    ours = clients[1]
    make_origin(ours)
    fill(ours)
    create(ours, "Z", sources=[{"name": "O"}])
    until_last(ours, "Z", 9)
    ask(ours, API + "STREAM.DELETE.O", None)
    make_origin(ours)
    publish(ours, "o.new", "new")
    until_last(ours, "Z", 10)
    assert contents(ours, "Z")[-1][1:] == ("o.new", ["NATS/1.0", "Nats-Stream-Source: O 1 > > o.new", "", ""], b"new")


def test_a_mirror_whose_origin_was_made_anew_says_what_it_lacks(clients: list[SyncClient]) -> None:
    """It goes on behind what it has, as nats-server's does; that one says nothing."""
    ours = clients[1]
    make_origin(ours)
    fill(ours)
    create(ours, "M", mirror={"name": "O"})
    assert "error" not in until_last(ours, "M", 10)["mirror"]
    ask(ours, API + "STREAM.DELETE.O", None)
    make_origin(ours)
    for number in range(11):
        publish(ours, "o.new", f"new{number}")
    error = until_last(ours, "M", 11)["mirror"]["error"]
    assert error["description"] == "the origin was deleted and made anew: of this one, 1 to 10 are not copied"
    assert [row[-1] for row in contents(ours, "M")][-2:] == [b"m10", b"new10"]


def test_a_mirror_answers_direct_gets_in_the_place_of_its_origin(clients: list[SyncClient]) -> None:
    ours = clients[1]
    make_origin(ours)
    fill(ours)
    create(ours, "M", mirror={"name": "O"})
    until_last(ours, "M", 10)
    assert info(ours, "M")["config"]["mirror_direct"] is True
    ask(ours, API + "STREAM.DELETE.O", None)
    assert ours.request(API + "DIRECT.GET.O", b'{"seq":3}', timeout=10.0).data == b"m3"


def test_a_durable_consumer_that_a_user_has_made_is_used(clients: list[SyncClient]) -> None:
    reported = []
    for client in clients:
        create(client, "Q", subjects=["q.>"], retention="workqueue")
        for number in range(5):
            publish(client, "q.a", f"{number}")
        config = {"durable_name": "dur", "deliver_subject": "dd", "ack_policy": "flow_control"}
        made = ask(client, API + "CONSUMER.DURABLE.CREATE.Q.dur", {"stream_name": "Q", "config": config})
        create(client, "C", mirror={"name": "Q", "consumer": {"name": "dur", "deliver_subject": "dd"}})
        until_last(client, "C", 5)
        deadline = time.monotonic() + PATIENCE
        while info(client, "Q")["state"]["messages"]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        reported.append((mask(made, {})["config"], [row[0:2] + row[3:] for row in contents(client, "C")]))
    assert reported[1] == reported[0]
