"""The conditions of exactly once: each holds, or says what to do."""

from typing import Any

import pyarrow as pa
import pytest
from support.headwater_server import HeadwaterServer
from support.nats_server import NatsServer
from support.stream_filling import fill

from headwater.errors import ConfigError
from headwater.spark import connections, sink_checks
from headwater.spark.row_publisher import RowPublisher
from headwater.spark.sink_checks import check_order, check_return, check_window, target_stream
from headwater.spark.sink_options import SinkOptions, parse_sink_options
from headwater.spark.sink_rows import rows_of

pytestmark = pytest.mark.interop

Server = NatsServer | HeadwaterServer


def options_of(server: Server, **more: str) -> SinkOptions:
    return parse_sink_options({"servers": server.url, **more})


def publish(options: SinkOptions, payloads: list[bytes], prefix: bytes) -> None:
    publisher = RowPublisher(options, check_duplicates=check_order)
    publisher.publish(rows_of(pa.RecordBatch.from_pydict({"data": pa.array(payloads)}), options, prefix, 0))
    publisher.finish()


def test_a_window_that_is_too_short_is_refused(server: Server) -> None:
    fill(server.url, "BRIEF", ["brief"], [], duplicate_window=60)
    client = connections.take(options_of(server).server, 5)
    with pytest.raises(ConfigError, match="remembers message ids for 60 s"):
        check_window(client, "BRIEF", options_of(server))
    check_window(client, "BRIEF", options_of(server, minDuplicateWindow="60"))
    before = client.requests
    check_window(client, "BRIEF", options_of(server, minDuplicateWindow="60"))
    assert client.requests == before, "a fit stream is not asked again at once"
    client.close()


def test_a_batch_that_comes_back_too_late_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(server.url, "LATE", ["late"], [])
    options = options_of(server, subject="late")
    publish(options, [b"a"], b"query/7/0/")
    client = connections.take(options.server, 5)
    assert target_stream(client, options) == "LATE"
    check_return(client, "LATE", b"query/7/")  # just now
    measured = sink_checks._age
    ages: list[float] = []

    def older(info: dict[str, Any], message: dict[str, Any]) -> float:
        ages.append(measured(info, message))
        return ages[-1] + 121

    monkeypatch.setattr(sink_checks, "_age", older)
    with pytest.raises(ConfigError, match="would double it"):
        check_return(client, "LATE", b"query/7/")
    check_return(client, "LATE", b"query/8/")
    assert len(ages) == 1
    assert -1 < ages[0] < 60
    client.close()


def test_rows_that_come_in_another_order_are_refused(server: Server) -> None:
    fill(server.url, "ORDERED", ["ordered"], [])
    options = options_of(server, subject="ordered")
    publish(options, [b"a", b"b"], b"query/0/0/")
    publish(options, [b"a", b"b"], b"query/0/0/")
    with pytest.raises(ConfigError, match="another one than the first time"):
        publish(options, [b"b", b"a"], b"query/0/0/")


def test_a_row_that_vanishes_far_behind_is_noticed(server: Server) -> None:
    fill(server.url, "VANISHED", ["vanished"], [])
    options = options_of(server, subject="vanished")
    payloads = [b"%d" % number for number in range(40)]
    publish(options, payloads, b"query/0/0/")
    with pytest.raises(ConfigError, match=r"row 30 .*another one than the first time"):
        publish(options, [*payloads[:30], *payloads[31:]], b"query/0/0/")


def test_an_empty_stream_has_nothing_that_could_come_back(server: Server) -> None:
    fill(server.url, "VOID", ["void"], [])
    client = connections.take(options_of(server).server, 5)
    check_return(client, "VOID", b"query/")
    assert target_stream(client, options_of(server, subject="nobody.at.all")) == ""
    client.close()
