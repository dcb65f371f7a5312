"""A reload with a connected leaf node: changes for the account also apply to messages from the leaf node."""

import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from support.clusters import connect, run
from support.embedded_broker import options_of
from support.leafs import HUB, OURS, REAL, Inbox, LeafServer, both_cross, serve, spoke_config, until

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
