"""A reload with a connected leaf node: changes for the account also apply to messages from the leaf node."""

import json
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from support.clusters import connect, run
from support.embedded_broker import options_of
from support.leafs import HUB, OURS, REAL, Inbox, LeafServer, both_cross, serve, spoke_config, until
from support.raw_wire import RawLink

pytestmark = pytest.mark.interop
MAPPED = f'{HUB}\nmappings: {{ "old.*": "new.$1" }}'


def reload(server: LeafServer, file: Path) -> None:
    """Make the server reload its configuration file."""
    if server.embedded is not None:
        embedded = server.embedded
        options = options_of(file, store_dir=file.parent / "store")

        async def read_again() -> None:
            embedded.broker.reload(options)

        embedded.run(read_again)
    elif server.process is not None:
        os.kill(server.process.pid, signal.SIGHUP)


@pytest.mark.parametrize("kind", [REAL, OURS])
def test_a_mapping_that_a_reload_adds_or_removes_applies_to_a_leaf_nodes_messages(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "hub" / "server.conf"
    with serve(kind, tmp_path / "hub", HUB) as hub, serve(REAL, tmp_path / "leaf", spoke_config(hub)) as leaf:

        async def test(stack: AsyncExitStack) -> None:
            sender, receiver = await connect(stack, leaf.url), await connect(stack, hub.url)
            old, new = Inbox(), Inbox()
            await receiver.subscribe("old.*", cb=old.take)
            await receiver.subscribe("new.*", cb=new.take)
            await both_cross(sender, receiver)

            async def comes_to(inbox: Inbox, what: str) -> None:
                """Publish until one message arrives: a reload takes a moment."""
                before = len(inbox.got)
                for _ in range(2000):
                    await sender.publish("old.x", b"")
                    await both_cross(sender, receiver)
                    if len(inbox.got) > before:
                        return
                pytest.fail(f"nothing came to {what}")

            await comes_to(old, "the subject itself")
            file.write_text(MAPPED)
            reload(hub, file)
            await comes_to(new, "the mapped subject")
            await until(lambda: {message.subject for message in new.got} == {"new.x"}, "mapped")
            if kind == OURS:  # nats-server 2.15.1 continues to map until it is restarted
                file.write_text(HUB)
                reload(hub, file)
                await comes_to(old, "the subject itself, once the mapping is gone")

        run(test)


USERS = f"accounts {{ A {{ users: [ {{user: client, password: c}}, {{user: leaf, password: l%s}} ] }} }}\n{HUB}"
REFUSED = b"-ERR 'Authorization Violation'\r\n"


@pytest.mark.parametrize("kind", [REAL, OURS])
def test_a_leaf_node_whose_user_a_reload_has_changed_is_not_let_in_again(tmp_path: Path, kind: str) -> None:
    """Ours let it in with the old password, until the hub was started again."""
    file = tmp_path / "server.conf"
    with serve(kind, tmp_path, USERS % "") as hub, dialled(hub) as leaf:
        leaf.receive_until(b"$LDS.")
        file.write_text(USERS % "onger")
        reload(hub, file)
        for _ in range(2000):  # a reload takes a moment
            with dialled(hub) as again:
                if again.receive_until(b"\r\n") == REFUSED:
                    break
        else:
            pytest.fail("the old password is still good")
        with dialled(hub, "longer") as other:
            other.receive_until(b"$LDS.")
        if kind == OURS:  # nats-server lets the connection be
            assert leaf.receive_end().endswith(REFUSED)


def test_a_leaf_node_has_other_permissions_when_it_comes_back(tmp_path: Path) -> None:
    file, denied = tmp_path / "server.conf", 'l, permissions: {publish: {deny: "no"}}'
    with serve(OURS, tmp_path, USERS % "") as hub, dialled(hub) as leaf:
        leaf.receive_until(b"$LDS.")
        file.write_text(USERS.replace("l%s", denied))
        reload(hub, file)
        assert not leaf.receive_end().endswith(REFUSED)
        with dialled(hub) as again:
            assert b'"export":{"deny":["no"]}' in again.receive_until(b"$LDS.")


def dialled(hub: LeafServer, password: str = "l") -> RawLink:
    link = RawLink(hub.leaf_port)
    connect = {"version": "2.10.0", "name": "me", "user": "leaf", "pass": password}
    link.send(b"CONNECT %b\r\n" % json.dumps(connect).encode())
    return link
