"""Arguments by nats-py's names and in its order: each is the same here, translated, or refused with what to use instead."""

import asyncio
import inspect
import re
import secrets
from pathlib import Path
from typing import Any

import pytest
from support.both_servers import Serve
from support.nats_py_walk import KINDS, PAIRS, Verdict, misplaced, walk
from support.scripted_server import finish

import headwater
from headwater.client.contexts import find_options
from headwater.client.jetstream_types import StreamConfig
from headwater.client.key_value import BucketConfig
from headwater.errors import ConfigError

REFUSED = [
    verdict for verdict in walk() if verdict.kept == "refused" and "(" in verdict.name and verdict.kind != "connect"
]


def _unmade(kind: Any) -> object:
    """An object that no `__init__` has seen."""
    made: object = kind.__new__(kind)
    return made


def test_every_public_name_and_argument_of_nats_py_has_a_verdict() -> None:
    assert [verdict for verdict in walk() if verdict.kept not in KINDS] == []


def test_arguments_by_position_are_those_of_nats_py_but_for_one_method() -> None:
    assert [each.partition(":")[0] for each in misplaced()] == ["KeyValue.purge"]


@pytest.mark.parametrize("verdict", REFUSED, ids=lambda verdict: f"{verdict.kind}.{verdict.name}")
def test_what_is_refused_names_the_replacement_before_anything_is_sent(verdict: Verdict) -> None:
    pair = next(each for each in PAIRS if each.ours.__name__ == verdict.kind)
    name, argument = re.fullmatch(r"(\w+)\(\**(\w+)=\)", verdict.name).groups()  # type: ignore[union-attr]
    method = getattr(_unmade(pair.ours), pair.here.get(name, name))
    values = ("a", b"b", 1) if name == "update" else ()

    async def call() -> None:
        result = method(*values, **{argument: object()})
        if inspect.isawaitable(result):
            await result

    with pytest.raises(TypeError, match=re.escape(verdict.here)):
        asyncio.run(call())


@pytest.mark.parametrize("argument", ["signature_cb", "user_jwt_cb", "ws_connection_headers"])
def test_an_argument_of_connect_without_a_counterpart_names_the_replacement(argument: str) -> None:
    arguments: dict[str, Any] = {argument: object()}
    with pytest.raises(TypeError, match=rf"nats-py's '{argument}' is here: \w+"):
        asyncio.run(headwater.connect("nats://127.0.0.1:1", **arguments))


def test_values_that_ask_for_nothing_are_taken() -> None:
    nothing: Any = {"signature_cb": None}
    found = find_options("nats://h", nothing, {})
    assert found.servers == ("nats://h",)


def test_core_calls_as_programs_for_nats_py_write_them(serve: Serve) -> None:
    async def main() -> None:
        subject = f"t.{secrets.token_hex(4)}"
        async with serve() as url, await headwater.connect(url) as nc:

            async def answer(message: headwater.Message) -> None:
                await message.respond(b"to " + message.data)

            await nc.subscribe(subject, "workers", answer)
            assert (await nc.request(subject, b"me", 5)).data == b"to me"
            reply = await nc.request(subject, payload=b"you", timeout=5, old_style=False)
            assert reply.data == b"to you"
            assert (await nc.request(subject, b"all", 5, False, {"K": "v"})).data == b"to all"
            sub: Any = await nc.subscribe(f"{subject}.x", pending_msgs_limit=7, pending_bytes_limit=700)  # type: ignore[call-arg]
            assert (sub.max_pending, sub.max_pending_bytes) == (7, 700)
            await nc.publish(f"{subject}.x", b"1", "reply.to", {"K": "v"})
            await nc.publish(f"{subject}.x", payload=b"2")
            first, second = await sub.next_msg(5), await sub.next_msg(timeout=5)
            assert (first.reply, first.headers["K"], second.data) == ("reply.to", "v", b"2")
            await sub.unsubscribe(limit=5)

    finish(main(), 30)


def test_jetstream_calls_as_programs_for_nats_py_write_them(serve: Serve) -> None:
    async def main() -> None:
        name = f"S{secrets.token_hex(4)}"
        async with serve() as url, await headwater.connect(url) as nc:
            js: Any = nc.jetstream()
            await js.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
            assert (await js.publish(f"{name}.a", payload=b"1", stream=name)).seq == 1
            assert (await js.publish(f"{name}.a", b"2", None, name, {"K": "v"})).seq == 2
            with pytest.raises(headwater.HeadwaterError, match="expected stream does not match"):
                await js.publish(f"{name}.a", b"3", stream="OTHER")
            assert (await js.stream_info(name, f"{name}.>")).state.subjects == {f"{name}.a": 2}
            assert await js.purge_stream(name, 2) == 1
            info = await js.update_stream(name=name, subjects=[f"{name}.>"], max_age=60)
            assert info.config.max_age == 60
            await js.delete_stream(name)

    finish(main(), 30)


def test_buckets_and_stores_as_programs_for_nats_py_make_them(serve: Serve) -> None:
    async def main() -> None:
        name = f"B{secrets.token_hex(4)}"
        async with serve() as url, await headwater.connect(url) as nc:
            js: Any = nc.jetstream()
            kv = await js.create_key_value(bucket=name, history=5, ttl=60, direct=None)
            assert (await kv.status()).config.max_age == 60
            await kv.put("a.b", b"1", validate_keys=True)
            await kv.put("c", b"2")
            assert await kv.keys(filters=["a.*"]) == ["a.b"]
            assert sorted(await kv.keys(["a.*", "c"])) == ["a.b", "c"]
            with pytest.raises(TypeError, match="put\\(\\) overwrites"):
                await kv.update("c", b"3")
            async for entry in kv.watch("c", include_history=True):
                assert entry.value == b"2"
                break
            store = await js.create_object_store(name, ttl=30)
            assert (await store.status()).config.max_age == 30
            await store.put("o", b"data")
            assert (await store.get("o", show_deleted=False)) == b"data"
            assert (await store.get_info("o", show_deleted=True)).size == 4
            await js.delete_object_store(name)
            await js.delete_key_value(name)

    finish(main(), 30)


def test_a_field_that_a_bucket_has_not_is_refused_as_a_configuration_refuses_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            headwater.Broker(jetstream=True, store_dir=tmp_path) as broker,
            await headwater.connect(broker.url) as nc,
        ):
            js: Any = nc.jetstream()
            with pytest.raises(TypeError, match="frobnicate"):
                await js.create_key_value(bucket="B", frobnicate=1)
            with pytest.raises(ConfigError, match="ttl is in seconds"):
                await js.create_key_value(bucket="B", ttl=30 * 10**9)
            assert await js.create_key_value(BucketConfig(bucket="B")) is not None

    finish(main(), 30)
