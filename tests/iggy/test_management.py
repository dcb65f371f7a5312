"""What apache-iggy can ask of a server beside messages, 0.9.0 and the pre-release of the next, over every transport that the
client has: it reads every answer."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from support.iggy_peers import installed, manage, with_released_client

from headwater.iggy.face import Iggy, IggyOptions
from headwater.iggy_client.client import connect
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.option_catalog import described
from headwater.iggy_wire.options import STREAM, USER

pytestmark = pytest.mark.interop

PRE_RELEASE = "0.9.1.dev5"
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


def conversation(tmp_path: Path, transport: str, folder: Path | None = None) -> dict[str, Any]:
    async def main() -> dict[str, Any]:
        options = IggyOptions(tcp=ANY, http=ANY, websocket=ANY, quic=ANY)
        async with asyncio.timeout(90), Iggy(options, tmp_path) as iggy:
            ports = {"tcp": iggy.tcp_port, "http": iggy.http_port, "ws": iggy.websocket_port, "quic": iggy.quic_port}
            return await manage(transport, f"127.0.0.1:{ports[transport]}", folder)

    return asyncio.run(main())


@with_released_client
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


@pytest.mark.parametrize("transport", ["tcp", "ws", "quic", "http"])
def test_a_client_of_protocol_0_12_alters_one_thing_at_a_time(tmp_path: Path, transport: str) -> None:
    steps = conversation(tmp_path, transport, installed("apache-iggy", PRE_RELEASE))
    failed = {name: value for name, value in steps.items() if str(value).startswith("error")}
    over_http = transport == "http"
    reported = {
        "update_segments": "cannot be updated after creation",
        "reset_name": "cannot be reset",
        "resize_fixed": "partition_resize_disabled" if over_http else "resizing is disabled",
        "changes": "Feature is unavailable",
        "wrong_password": "Unauthenticated" if over_http else "Invalid credentials",
        "delete_stream_again": "was not found",
    }
    if over_http:  # the client has no groups there, and shows the text of an answer
        reported |= {
            "join": "Feature is unavailable",
            "leave": "Feature is unavailable",
            "changes": "feature_unavailable",
        }
    assert failed.keys() == reported.keys() and all(text in failed[name] for name, text in reported.items())
    readable = {name: value for name, value in READABLE.items() if name != "poll_purged"}
    for scope, number in (("stream", STREAM), ("user", USER)):
        readable[f"options_{scope}"] = [option.key for option in described(number, Era.W)]
    assert {name: steps[name] for name in readable} == readable
    assert steps["topic_patched"] == [24, "Custom"]
    assert steps["topic_reset"] == [24, "Unlimited"]
    assert steps["group"] == ["g", 3, [] if over_http else [[0, 1, 2]]]
    assert steps["stats"] == "0.9.0"


TOKEN_PROGRAM = """
import asyncio, sys
from apache_iggy import IggyClient

async def main():
    client = IggyClient.from_connection_string(sys.argv[1])
    await client.connect()
    print([stream.name for stream in await client.get_streams()])

asyncio.run(main())
"""


def test_a_personal_access_token_logs_a_client_of_0_12_in(tmp_path: Path) -> None:
    folder = installed("apache-iggy", PRE_RELEASE)

    async def ask(url: str) -> str:
        program = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            TOKEN_PROGRAM,
            url,
            env={**os.environ, "PYTHONPATH": str(folder)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        return (await program.communicate())[0].decode()

    async def main() -> None:
        async with asyncio.timeout(90), Iggy(IggyOptions(tcp=ANY), tmp_path) as iggy:
            async with await connect(f"iggy://iggy:iggy@127.0.0.1:{iggy.tcp_port}") as client:
                await client.create_stream("s")
                token = await client.create_token("ci-token")
            wrong = "x" * len(token)
            known, unknown = await asyncio.gather(
                *(ask(f"iggy://{one}@127.0.0.1:{iggy.tcp_port}?reconnection_retries=0") for one in (token, wrong))
            )
            assert known == "['s']\n"
            assert "Invalid personal access token" in unknown

    asyncio.run(main())
