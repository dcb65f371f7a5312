"""Updates as protocol 0.12 asks for them: what is named changes, what is reset has its default, all else stays."""

from pathlib import Path

from support.iggy_service import Desk, S, T, at_desk

from headwater.iggy_wire import commands as c
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Identifier
from headwater.iggy_wire.options import NEVER
from headwater.model.typed_headers import HeaderForm, TypedHeaders

STREAM, TOPIC, ALICE = (2, (S,)), (1, (S, T)), (3, (Identifier("alice"),))


def block(**options: str) -> bytes:
    return TypedHeaders(options).encode(HeaderForm.TYPED)


def test_what_an_update_does_not_name_stays_as_it_is(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        client = desk.client(Era.X)
        await desk.do(c.CreateStream("s"), client)
        await desk.do(c.CreateTopic(S, "t", 1, options=block(message_expiry="1 hour", max_topic_size="1 GiB")), client)
        await desk.do(c.UpdateResource(TOPIC, [], block(message_expiry="2 hours")), client)
        topic = await desk.do(c.GetTopic(S, T), client)
        assert (topic.name, topic.message_expiry, topic.max_size) == ("t", 7_200_000_000, 1 << 30)
        await desk.do(c.UpdateResource(TOPIC, ["max_topic_size"], block(name="t2")), client)
        topic = await desk.do(c.GetTopic(S, Identifier("t2")), client)
        assert (topic.message_expiry, topic.max_size) == (7_200_000_000, NEVER)
        chosen = {str(key) for key in TypedHeaders.decode(topic.options, HeaderForm.TYPED)}
        derived = {str(key) for key in TypedHeaders.decode(topic.derived, HeaderForm.TYPED)}
        assert "message_expiry" in chosen and "max_topic_size" in derived - chosen
        await desk.do(c.UpdateResource(STREAM, [], block(name="s2")), client)
        assert (await desk.do(c.GetStream(Identifier("s2")), client)).topics == 1

    at_desk(tmp_path, work)


def test_a_user_is_renamed_and_put_to_rest(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.do(c.CreateUser("alice", "secret"))
        await desk.do(c.UpdateResource(ALICE, [], block(username="alicia", status="inactive")))
        user = await desk.do(c.GetUser(Identifier("alicia")))
        assert (user.username, user.status) == ("alicia", 2)
        assert await desk.refused(c.UpdateResource((3, (Identifier("alicia"),)), [], block(status="?"))) == (
            "invalid_option_value"
        )

    at_desk(tmp_path, work)


IMPOSSIBLE: list[tuple[tuple[int, tuple[Identifier, ...]], list[str], bytes, str]] = [
    (TOPIC, [], b"", "invalid_command"),
    (TOPIC, ["message_expiry", "message_expiry"], b"", "invalid_command"),
    (TOPIC, ["message_expiry"], block(message_expiry="1 hour"), "invalid_command"),
    (TOPIC, ["segment_size"], b"", "option_not_updatable"),
    (TOPIC, ["colour"], b"", "unsupported_option_key"),
    (TOPIC, [], block(message_expiry="0"), "invalid_command"),
    (STREAM, ["encryption_key_source"], b"", "read_only_option"),
    (STREAM, ["name"], b"", "option_not_resettable"),
    (TOPIC, [], block(segment_size="1 MiB"), "option_not_updatable"),
    (TOPIC, [], block(colour="red"), "unsupported_option_key"),
    (TOPIC, [], b"\0", "invalid_option_value"),
    ((1, (S, Identifier("no"))), ["message_expiry"], b"", "topic_name_not_found"),
]


def test_an_update_that_cannot_be_says_why_and_alters_nothing(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        before, client = desk.service.catalog.encode(), desk.client(Era.X)
        for target, reset, options, error in IMPOSSIBLE:
            assert await desk.refused(c.UpdateResource(target, reset, options), client) == error
            assert desk.service.catalog.encode() == before

    at_desk(tmp_path, work)


def test_who_may_not_alter_a_stream_may_not_patch_it(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        await desk.do(c.CreateUser("alice", "secret"))
        alice = desk.client(Era.X, "alice")
        assert await desk.refused(c.UpdateResource(STREAM, [], block(name="mine")), alice) == "unauthorized"
        assert await desk.refused(c.GetPartitionRoute(S, T, 0), alice) == "unauthorized"
        assert (await desk.do(c.GetPartitionRoute(S, T, 1), desk.client(Era.X))).partitions == 2

    at_desk(tmp_path, work)
