"""A program written for nats-py: its names work, or say what to use instead."""

import asyncio
import inspect
import re
import secrets
from types import ModuleType
from typing import cast

import nats.aio.client
import nats.js.client
import nats.js.kv
import nats.js.object_store
import pytest
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from support.both_servers import Serve
from support.nats_py_walk import HOUSES, walk
from support.scripted_server import ScriptedServer, finish, until

import headwater
import headwater.client.subscription
import headwater.errors
from headwater.client.client import Client
from headwater.client.contexts import find_options
from headwater.client.jetstream import JetStream
from headwater.client.jetstream_types import ConsumerConfig, StreamConfig
from headwater.client.key_value import KeyValue
from headwater.client.nats_py_names import (
    CALLBACKS,
    CLIENT,
    CLIENT_ADVICE,
    IGNORED_ARGUMENTS,
    JETSTREAM_ADVICE,
    NEGATED_ARGUMENTS,
    RENAMED_ARGUMENTS,
)
from headwater.client.object_store import ObjectStore, StoreConfig
from headwater.client.options import ClientOptions, ConnectArguments
from headwater.client.stream_message import StreamMessage

HANDLED = {*RENAMED_ARGUMENTS, *NEGATED_ARGUMENTS, *IGNORED_ARGUMENTS, *CALLBACKS, "error_cb", "max_reconnect_attempts"}
NOT_TAKEN = {"signature_cb", "user_jwt_cb", "ws_connection_headers", "reconnect_to_server_handler"}


def test_every_argument_of_their_connect_is_known_or_named_as_missing() -> None:
    theirs = set(inspect.signature(nats.aio.client.Client.connect).parameters) - {"self"}
    ours = set(ClientOptions.__dataclass_fields__)
    assert theirs - HANDLED - ours - NOT_TAKEN == set()


def test_public_names_of_their_client_and_jetstream_work_or_are_advised_about() -> None:
    theirs = {name for name in dir(nats.aio.client.Client) if not name.startswith("_") and name.islower()}
    assert theirs - set(dir(Client)) - set(CLIENT) - set(CLIENT_ADVICE) == set()
    theirs = {name for name in dir(nats.js.client.JetStreamContext) if not name.startswith("_") and name.islower()}
    assert theirs - set(dir(JetStream)) - set(JETSTREAM_ADVICE) == set()


@pytest.mark.parametrize(
    ("theirs", "ours", "attributes"),
    [
        (Subscription, headwater.client.subscription.Subscription, {"subject", "queue", "pending_bytes"}),
        (Msg, StreamMessage, set()),
        (nats.js.kv.KeyValue, KeyValue, set()),
        (nats.js.object_store.ObjectStore, ObjectStore, set()),
    ],
)
def test_public_names_of_what_their_client_makes_work_or_are_advised_about(
    theirs: type, ours: type, attributes: set[str]
) -> None:
    names = {name for name in dir(theirs) if not name.startswith("_") and name.islower()}
    assert names - set(dir(ours)) - attributes == set()


def test_a_message_that_is_settled_in_their_way_says_where_such_messages_come_from() -> None:
    message = headwater.Message("a", b"x")
    for name in ("ack", "nak", "term", "in_progress", "ack_sync", "metadata"):
        with pytest.raises(AttributeError, match="pull_consumer"):
            getattr(message, name)
    with pytest.raises(AttributeError, match=r"message\.headers"):
        _ = message.header  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"'frobnicate'$"):
        _ = message.frobnicate  # type: ignore[attr-defined]
    assert not hasattr(message, "ack")


def test_messages_of_a_stream_and_stores_answer_to_their_names(serve: Serve) -> None:
    async def main() -> None:
        name = f"S{secrets.token_hex(4)}"
        async with serve() as url, await headwater.connect(url) as client:
            js = client.jetstream()
            await js.create_stream(StreamConfig(name=name, subjects=[f"{name}.>"]))
            await js.publish(f"{name}.a", b"1", headers={"K": "v"})
            await js.create_consumer(name, ConsumerConfig(durable_name="C"))
            (message,) = await js.pull_consumer(name, "C").fetch(1)
            assert (message.header["K"], message.reply.startswith("$JS.ACK.")) == ("v", True)
            await message.ack_sync(timeout=5)
            assert (await js.consumer_info(name, "C")).num_ack_pending == 0
            store = await js.create_object_store(StoreConfig(bucket=name))
            await store.put("o", b"data")
            assert (await store.get_info("o")).size == 4
            assert [each.name for each in await store.list()] == ["o"]  # type: ignore[attr-defined]
            with pytest.raises(AttributeError, match="update"):
                _ = store.update_meta  # type: ignore[attr-defined]
            await js.delete_object_store(name)
            await js.delete_stream(name)

    finish(main(), 30)


def options_for(**arguments: object) -> ClientOptions:
    return find_options("nats://h", cast(ConnectArguments, arguments), {})


def test_arguments_are_translated() -> None:
    options = options_for(no_echo=True, allow_reconnect=False, max_reconnect_attempts=3)
    assert (options.echo, options.reconnect, options.reconnect_attempts) == (False, False, 3)
    assert options_for(max_reconnect_attempts=-1).reconnect_attempts is None
    assert not options_for(max_reconnect_attempts=0).reconnect
    assert options_for(dont_randomize=False, flush_timeout=3).randomise


def test_a_program_for_nats_py_runs(serve: Serve) -> None:
    async def main() -> None:
        subject = f"test.{secrets.token_hex(4)}"
        errors: list[Exception] = []

        async def error_cb(error: Exception) -> None:
            errors.append(error)

        async with serve() as url:
            nc = await headwater.connect(servers=[url], error_cb=error_cb, max_reconnect_attempts=2)  # type: ignore[call-arg]
            assert nc.connected_url == url
            assert not nc.is_reconnecting
            assert nc.max_payload > 0

            async def handler(msg: headwater.Message) -> None:
                await msg.respond(b"to " + msg.data)

            sub = await nc.subscribe(subject, queue="workers", cb=handler)
            response = await nc.request(subject, b"me", timeout=5)
            assert response.data == b"to me"
            await sub.unsubscribe()
            sub = await nc.subscribe(subject, max_msgs=2)
            await nc.publish(subject, b"1", headers={"K": "v"})
            await nc.publish(subject, b"2")
            assert (await sub.next_msg(timeout=5)).headers["K"] == "v"
            async for msg in sub.messages:
                assert msg.data == b"2"
            with pytest.raises(AttributeError, match=r"create_stream\(StreamConfig"):
                _ = nc.jetstream().add_stream  # type: ignore[attr-defined]
            with pytest.raises(AttributeError, match="flush"):
                _ = nc.rtt  # type: ignore[attr-defined]
            with pytest.raises(AttributeError, match=r"'frobnicate'$"):
                _ = nc.frobnicate  # type: ignore[attr-defined]
            await nc.drain()
            assert nc.is_closed
            assert errors == []

    finish(main(), 30)


def test_coroutine_callbacks_hear_what_happens() -> None:
    async def main() -> None:
        received: list[str] = []

        async def disconnected_cb() -> None:
            received.append("disconnected")

        async def reconnected_cb() -> None:
            received.append("reconnected")

        async def closed_cb() -> None:
            received.append("closed")

        async with ScriptedServer() as server:
            connecting = asyncio.create_task(
                headwater.connect(
                    server.url,
                    disconnected_cb=disconnected_cb,  # type: ignore[call-arg]
                    reconnected_cb=reconnected_cb,
                    closed_cb=closed_cb,
                    reconnect_time_wait=0.0,
                )
            )
            peer = await server.accept()
            await peer.welcome()
            client = await connecting
            peer.cut()
            peer = await server.accept()
            await peer.welcome()
            await until(lambda: received == ["disconnected", "reconnected"])
            peer.hang_up()
            await client.close()
            await until(lambda: received[-1] == "closed")

    finish(main())


THEIR_ERRORS: dict[str, ModuleType] = {"nats.errors": headwater.errors, "nats.js.errors": headwater.errors}
ELSEWHERE = [
    (house, verdict.name, verdict.here)
    for verdict in walk()
    for house in ({each.title: each.ours for each in HOUSES} | THEIR_ERRORS).items()
    if verdict.kind == house[0] and "." not in verdict.name and verdict.kept != "same"
]
ADAPTED = {(verdict.kind, verdict.name) for verdict in walk() if verdict.kept == "adapted"}


@pytest.mark.parametrize(("house", "name", "here"), ELSEWHERE, ids=lambda each: each if isinstance(each, str) else "")
def test_a_class_of_another_module_of_theirs_is_imported_by_its_name_or_the_error_names_ours(
    house: tuple[str, ModuleType], name: str, here: str
) -> None:
    program = f"from {house[1].__name__} import {name}"
    names: dict[str, object] = {}
    if (house[0], name) in ADAPTED:
        exec(program, names)
        assert here.strip("`").startswith("a text") or names[name] is getattr(house[1], here.strip("`"))
        return
    with pytest.raises(ImportError, match=re.escape(f"nats-py's {name!r} is here: {here}")):
        exec(program, names)


def test_a_name_that_nobody_has_is_missing_as_in_any_module() -> None:
    for module in (headwater.errors, *(house.ours for house in HOUSES)):
        assert not hasattr(module, "Frobnicate")
        with pytest.raises(ImportError, match="cannot import name 'Frobnicate'"):
            exec(f"from {module.__name__} import Frobnicate", {})


def test_attributes_of_their_answers_say_where_they_are_here() -> None:
    refused = [
        verdict for verdict in walk() if verdict.kept == "refused" and "." in verdict.name and "(" not in verdict.name
    ]
    assert refused
    for verdict in refused:
        house = next(each for each in HOUSES if each.title == verdict.kind)
        theirs, _, attribute = verdict.name.partition(".")
        ours = house.elsewhere.get(theirs) or getattr(house.ours, house.renamed.get(theirs, theirs))
        with pytest.raises(AttributeError, match=re.escape(verdict.here)):
            inspect.getattr_static(ours, attribute).fget(None)


def test_a_program_catches_by_their_names_what_ours_raises(serve: Serve) -> None:
    from headwater.errors import APIError, NoRespondersError, TimeoutError  # type: ignore[attr-defined]

    async def main() -> None:
        async with serve() as url, await headwater.connect(url) as client:
            with pytest.raises(NoRespondersError):
                await client.request("nobody", b"", timeout=30)
            subscription = await client.subscribe("a")
            with pytest.raises(TimeoutError):
                await subscription.next(timeout=0.01)
            with pytest.raises(APIError) as caught:
                await client.jetstream().stream_info("NONE")
            assert caught.value.code == 404

    finish(main())
