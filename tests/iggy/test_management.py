"""What apache-iggy 0.9.0 can ask of a server beside messages, over TCP, HTTP and WebSocket: it reads every answer."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.iggy_peers import manage

from headwater.iggy.face import Iggy, IggyOptions

pytestmark = pytest.mark.interop

ANY = ("127.0.0.1", 0)
READABLE = {
    "options_stream": [],
    "options_user": [],
    "streams": ["s2"],
    "topic": ["t2", 3, "none", str(1 << 24)],
    "topics": ["t2"],
    "poll": [[7, "x"]],
    "groups": ["g"],
    "group_gone": None,
    "poll_purged": 0,
    "create_user": ["alice", "UserStatus.Inactive", True, [3], [[5]]],
    "user": ["alice", "UserStatus.Inactive", True, [3], [[5]]],
    "users": ["iggy", "alicia"],
    "user_after": ["alicia", "UserStatus.Active", None, [], []],
    "user_gone": None,
}


def conversation(tmp_path: Path, transport: str) -> dict[str, Any]:
    async def main() -> dict[str, Any]:
        async with asyncio.timeout(90), Iggy(IggyOptions(tcp=ANY, http=ANY, websocket=ANY), tmp_path) as iggy:
            ports = {"tcp": iggy.tcp_port, "http": iggy.http_port, "ws": iggy.websocket_port}
            return await manage(transport, f"127.0.0.1:{ports[transport]}")

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("transport", "group", "refused"),
    [
        ("tcp", ["g", 3, [[0, 1, 2]]], {"wrong_password", "delete_stream_again"}),
        ("ws", ["g", 3, [[0, 1, 2]]], {"wrong_password", "delete_stream_again"}),
        (
            "http",
            ["g", 3, []],
            {"wrong_password", "delete_stream_again", "join", "leave"},
        ),  # the client has no groups there
    ],
)
def test_everything_is_answered_as_the_client_reads_it(
    tmp_path: Path, transport: str, group: list[Any], refused: set[str]
) -> None:
    steps = conversation(tmp_path, transport)
    assert {name for name, value in steps.items() if str(value).startswith("error")} == refused
    assert {name: steps[name] for name in READABLE} == READABLE
    assert steps["group"] == group
    assert steps["stats"] == "0.9.0"
    assert {"message_expiry", "max_topic_size", "segment_size"} <= set(steps["options_topic"])
