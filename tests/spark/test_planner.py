"""The planner's view of a stream: fresh when asked, quiet when idle, back after a lost connection."""

import pickle
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import pytest
from support.cut_proxy import CutProxy
from support.headwater_server import HeadwaterServer
from support.nats_server import NatsServer
from support.stream_filling import delete_stream, fill, numbered

from headwater.client.blocking import BlockingClient
from headwater.client.options import ClientOptions
from headwater.errors import ConfigError, JetStreamError, TransportError
from headwater.spark import planner as planning
from headwater.spark.options import parse_options
from headwater.spark.planner import StreamPlanner

pytestmark = pytest.mark.interop

Server = NatsServer | HeadwaterServer


def planner_for(url: str, stream: str, **options: str) -> StreamPlanner:
    return StreamPlanner(parse_options({"servers": url, "stream": stream, "readTimeout": "10", **options}))


def test_the_state_is_that_of_the_stream(server: Server) -> None:
    fill(server.url, "PLANNED", ["planned.*"], numbered("planned", 7))
    planner = planner_for(server.url, "PLANNED")
    state = planner.state()
    assert (state.place, state.first, state.end) == ("PLANNED", 1, 8)
    planner.close()


def test_waiting_ends_soon_after_a_message_comes_and_else_after_a_moment(server: Server) -> None:
    fill(server.url, "AWAITED", ["awaited.*"], numbered("awaited", 3))
    planner = planner_for(server.url, "AWAITED")
    end = planner.state().end
    start = time.monotonic()
    assert planner.wait_beyond(end) is None
    assert time.monotonic() - start < 5
    publisher = threading.Thread(target=fill, args=(server.url, "AWAITED", ["awaited.*"], numbered("awaited", 4, 3)))
    publisher.start()
    deadline = time.monotonic() + 20
    while (state := planner.wait_beyond(end)) is None:
        assert time.monotonic() < deadline
    publisher.join()
    assert state.end > end
    assert planner.state().end == 8
    planner.close()


def test_a_forked_planner_connects_without_importing(server: Server) -> None:
    """What `planner_template` imports for all planners of a JVM is all that the first connection takes."""
    fill(server.url, "IMPORTED", ["imported.*"], numbered("imported", 1))
    program = f"""
import importlib, sys
from headwater.spark import reader
from headwater.spark.options import parse_options
from headwater.spark_runtime.planner_template import RESOLVING
from pyspark_nats import DefaultSource
for name in (*DefaultSource.connects_with, *RESOLVING):
    importlib.import_module(name)
before = set(sys.modules)
reader.StreamPlanner(parse_options({{"servers": {server.url!r}, "stream": "IMPORTED"}})).state()
print(sorted(set(sys.modules) - before))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_what_is_there_already_is_found_by_one_request(server: Server) -> None:
    fill(server.url, "BUSY", ["busy.*"], numbered("busy", 3))
    planner = planner_for(server.url, "BUSY")
    end = planner.state().end
    fill(server.url, "BUSY", ["busy.*"], numbered("busy", 2, 3))
    before = planner.requests
    state = planner.wait_beyond(end)
    assert state is not None and state.end == end + 2
    assert planner.requests == before + 1
    planner.close()


def test_an_idle_planner_asks_five_times_a_second_at_most(server: Server) -> None:
    fill(server.url, "IDLE", ["idle.*"], numbered("idle", 3))
    planner = planner_for(server.url, "IDLE")
    end = planner.state().end
    planner.wait_beyond(end)
    before, start = planner.requests, time.monotonic()
    for _ in range(8):
        assert planner.wait_beyond(end) is None
    assert (planner.requests - before) / (time.monotonic() - start) <= 5
    planner.close()


def test_with_a_filter_only_matching_messages_end_the_wait(server: Server) -> None:
    fill(server.url, "SIFTED", ["sifted.*"], numbered("sifted", 3))
    planner = planner_for(server.url, "SIFTED", subjects="sifted.9")
    end = planner.state().end
    fill(server.url, "SIFTED", ["sifted.*"], numbered("sifted", 1, 3))
    assert planner.wait_beyond(end) is None
    fill(server.url, "SIFTED", ["sifted.*"], [("sifted.9", None, b"")])
    state = planner.wait_beyond(end)
    assert state is not None
    assert state.end == 6
    planner.close()


def test_lost_connections_are_replaced(server: Server) -> None:
    fill(server.url, "FLAKY", ["flaky.*"], numbered("flaky", 3))
    with CutProxy(server.port, allowance=6000) as proxy:
        planner = planner_for(proxy.url, "FLAKY")
        for _ in range(20):
            assert planner.state().end == 4
        assert proxy.cuts > 0
        planner.close()


def test_a_stream_that_is_deleted_while_nothing_comes_is_noticed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "REFRESH_SECONDS", 0.0)
    fill(server.url, "DOOMED", ["doomed.*"], numbered("doomed", 3))
    planner = planner_for(server.url, "DOOMED")
    end = planner.state().end
    delete_stream(server.url, "DOOMED")
    with pytest.raises(JetStreamError, match="stream not found"):
        planner.wait_beyond(end)


def test_a_work_queue_is_refused(nats_server: NatsServer) -> None:
    from headwater.client.blocking import BlockingClient
    from headwater.client.options import ClientOptions

    client = BlockingClient.connect(ClientOptions(servers=[nats_server.url]))
    client.api("STREAM.CREATE.QUEUE", {"name": "QUEUE", "subjects": ["queue"], "retention": "workqueue"})
    client.close()
    planner = planner_for(nats_server.url, "QUEUE")
    with pytest.raises(ConfigError, match="workqueue retention"):
        planner.state()
    planner.close()


def test_no_server_is_given_up_on_after_the_read_timeout() -> None:
    start = time.monotonic()
    with pytest.raises(TransportError):
        planner_for("nats://127.0.0.1:1", "S", readTimeout="0.3").state()
    assert time.monotonic() - start < 5


def test_the_connection_stays_behind_when_a_planner_is_pickled(server: Server) -> None:
    fill(server.url, "PICKLED", ["pickled.*"], numbered("pickled", 3))
    planner = planner_for(server.url, "PICKLED")
    planner.state()
    assert planner.requests
    copy = pickle.loads(pickle.dumps(planner))
    assert copy.requests == 0
    assert copy.state().end == 4
    copy.close()
    planner.close()


class Leader:
    """The leader of a stream of `replicas`, whose newest message was stored at noon; None: it has no message."""

    def __init__(self, replicas: int, newest: str | None = "2026-11-22T12:00:00.5Z") -> None:
        self.replicas, self.newest = replicas, newest

    def api(self, subject: str, document: dict[str, Any] | None = None) -> dict[str, Any]:
        if subject == "STREAM.INFO.S":
            config = {"name": "S", "num_replicas": self.replicas}
            return {"config": config, "created": "now", "state": {"first_seq": 1, "last_seq": 9}}
        assert (subject, document) == ("STREAM.MSG.GET.S", {"last_by_subj": ">"})
        if self.newest is None:
            raise JetStreamError(404, 10037, "no message found")
        return {"message": {"seq": 9, "time": self.newest}}


@pytest.mark.parametrize(
    ("leader", "second", "lags"),
    [
        (Leader(3), 0, True),
        (Leader(3), 1, False),
        (Leader(3, newest=None), 0, False),
        (Leader(1), 0, False),
    ],
)
def test_that_no_message_is_as_young_is_believed_of_the_leader_alone(leader: Leader, second: int, lags: bool) -> None:
    context = pytest.raises(TransportError, match="has not caught up") if lags else nullcontext()
    with context:
        planning._check_none_since(leader, "S", datetime(2026, 11, 22, 12, 0, second, tzinfo=UTC))  # type: ignore[arg-type]


def test_a_filter_that_can_match_nothing_is_logged_once(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    fill(server.url, "TYPED", ["typed.*"], numbered("typed", 3))
    planner = planner_for(server.url, "TYPED", subjects="tpyed.*,typed.99")
    for _ in range(2):
        planner.state()
    planner.close()
    (line,) = [record.getMessage() for record in caplog.records]
    assert "subjects=tpyed.*: the stream takes typed.*" in line, "typed.99 may come"


@pytest.mark.parametrize(
    ("config", "stored"),
    [
        ({"subjects": ["a.*", "b"]}, ["a.*", "b"]),
        ({"subjects": ["a.*"], "sources": [{"name": "B"}]}, [">"]),
        ({"mirror": {"name": "B"}}, [">"]),
        ({"subjects": ["a.*"], "subject_transform": {"src": "a.*", "dest": "x.{{wildcard(1)}}.y"}}, ["x.*.y"]),
        ({"subjects": ["a.*", "b"], "subject_transform": {"src": "a.*", "dest": "x.$1"}}, ["b", "x.*"]),
        ({"subjects": ["a.*"], "subject_transform": {"src": "a.*", "dest": "x.{{split(1,-)}}"}}, [">"]),
    ],
)
def test_the_subjects_under_which_a_stream_stores(config: dict[str, Any], stored: list[str]) -> None:
    assert planning.stored_subjects(config) == stored


def test_a_filter_for_what_a_stream_held_before_is_not_logged(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    fill(server.url, "RENAMED", ["before.*"], numbered("before", 3))
    client = BlockingClient.connect(ClientOptions(servers=[server.url]))
    config = client.api("STREAM.INFO.RENAMED")["config"]
    client.api("STREAM.UPDATE.RENAMED", {**config, "subjects": ["after.*"]})
    client.close()
    planner = planner_for(server.url, "RENAMED", subjects="before.1")
    assert planner.state().end == 4
    planner.close()
    assert not caplog.records
