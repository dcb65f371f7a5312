"""A program written for nats-py: its names work, or say what to use instead."""

import asyncio
import inspect
import secrets
from typing import cast

import nats.aio.client
import nats.js.client
import pytest
from support.both_servers import Serve
from support.scripted_server import ScriptedServer, finish, until

import headwater
from headwater.client.client import Client
from headwater.client.contexts import find_options
from headwater.client.jetstream import JetStream
from headwater.client.nats_py_names import (
    CALLBACKS,
    CLIENT,
    CLIENT_ADVICE,
    IGNORED_ARGUMENTS,
    JETSTREAM_ADVICE,
    NEGATED_ARGUMENTS,
    RENAMED_ARGUMENTS,
)
from headwater.client.options import ClientOptions, ConnectArguments

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
                await msg.respond(b"to " + msg.data)  # type: ignore[misc]

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
                _ = nc.jetstream().add_stream
            with pytest.raises(AttributeError, match="flush"):
                _ = nc.rtt
            with pytest.raises(AttributeError, match=r"'frobnicate'$"):
                _ = nc.frobnicate
            await nc.drain()
            assert nc.is_closed
            assert errors == []

    finish(main(), 30)


def test_coroutine_callbacks_hear_what_happens() -> None:
    async def main() -> None:
        heard: list[str] = []

        async def disconnected_cb() -> None:
            heard.append("disconnected")

        async def reconnected_cb() -> None:
            heard.append("reconnected")

        async def closed_cb() -> None:
            heard.append("closed")

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
            await until(lambda: heard == ["disconnected", "reconnected"])
            peer.hang_up()
            await client.close()
            await until(lambda: heard[-1] == "closed")

    finish(main())
