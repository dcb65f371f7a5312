"""`headwater store import`: stores that the real nats-server wrote, whole and damaged, compared message by message.

The real server describes its streams before it ends; ours describes them after the import.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.nats_server import older_nats_servers, start_nats_server

import headwater
from headwater.cli.main import main
from headwater.client.client import Client
from headwater.options.access import AccountOptions, JetStreamLimits, UserOptions

pytestmark = pytest.mark.interop

API = "$JS.API."
# As in the configuration of the real one.
ACCOUNT = AccountOptions(name="A", users=(UserOptions(username="a", password="a"),), jetstream=JetStreamLimits())
CONFIG = "accounts { A { users: [ { user: a, password: a } ], jetstream: enabled } }"


async def ask(client: Client, subject: str, body: object = None) -> dict[str, Any]:
    payload = b"" if body is None else json.dumps(body).encode()
    document: dict[str, Any] = json.loads((await client.request(API + subject, payload, timeout=30)).data)
    assert "error" not in document, document
    return document


async def create(client: Client, name: str, **more: Any) -> None:
    config = {"name": name, "subjects": [f"{name}.>"], "storage": "file", "retention": "limits", **more}
    await ask(client, f"STREAM.CREATE.{name}", config)


async def store(client: Client, subject: str, payload: bytes, headers: list[tuple[str, str]] | None = None) -> None:
    answer = json.loads((await client.request(subject, payload, headers=headers, timeout=30)).data)
    assert "error" not in answer, answer


async def fill(client: Client) -> None:
    """Streams with everything that a block may hold."""
    await create(client, "PLAIN")
    for number in range(50):
        await store(client, f"PLAIN.{number % 5}", b"%d" % number * number)
    for number in (1, 2, 17, 18, 50):
        await ask(client, "STREAM.MSG.DELETE.PLAIN", {"seq": number, "no_erase": number != 17})
    await create(client, "HEADS", compression="s2", allow_msg_ttl=True)
    for number in range(40):
        await store(client, "HEADS.x", b"p" * 200, [("A", str(number)), ("A", "twice"), ("B", "ä" * 20)])
    await store(client, "HEADS.ttl", b"stays", [("Nats-TTL", "1h")])
    await create(client, "EMPTIED")
    for _ in range(7):
        await store(client, "EMPTIED.x", b"x")
    await ask(client, "STREAM.PURGE.EMPTIED")
    await create(client, "PURGED", max_msgs_per_subject=2)
    for number in range(20):
        await store(client, f"PURGED.{number % 3}", b"%d" % number)
    await ask(client, "STREAM.PURGE.PURGED", {"filter": "PURGED.1"})
    await create(client, "FRESH")
    kv = {"max_msgs_per_subject": 1, "allow_rollup_hdrs": True, "deny_delete": True, "allow_direct": True}
    await create(client, "KV_box", subjects=["$KV.box.>"], **kv)
    for value in (b"one", b"two"):
        await store(client, "$KV.box.key", value)
    await store(client, "$KV.box.gone", b"", [("KV-Operation", "DEL")])
    for name, filtered in (("c1", "PLAIN.>"), ("c2", "PLAIN.3"), ("new", "PLAIN.>")):
        consumer = {
            "durable_name": name,
            "ack_policy": "explicit",
            "filter_subject": filtered,
            "ack_wait": 3600 * 10**9,
        }
        body = {"stream_name": "PLAIN", "config": consumer}
        await ask(client, f"CONSUMER.DURABLE.CREATE.PLAIN.{name}", body)
    inbox = client.new_inbox()
    deliveries = await client.subscribe(inbox)
    await client.publish(f"{API}CONSUMER.MSG.NEXT.PLAIN.c1", b'{"batch": 5}', reply=inbox)
    replies = [(await deliveries.next(30)).reply for _ in range(5)]
    for at in (0, 1, 2, 4):
        await client.request(replies[at] or "", b"+ACK", timeout=30)


async def describe(client: Client) -> dict[str, Any]:
    """Every stream: its state, all of its messages, its consumers."""
    names = sorted((await ask(client, "STREAM.NAMES"))["streams"] or [])
    found = {}
    for name in names:
        info = await ask(client, f"STREAM.INFO.{name}", {"deleted_details": True})
        state, config = info["state"], info["config"]
        messages = {}
        for sequence in range(state["first_seq"], state["last_seq"] + 1):
            reply = await client.request(
                f"{API}STREAM.MSG.GET.{name}", json.dumps({"seq": sequence}).encode(), timeout=30
            )
            document = json.loads(reply.data)
            if "error" not in document:
                messages[sequence] = document["message"]
        consumers = {}
        for consumer in (await ask(client, f"CONSUMER.LIST.{name}"))["consumers"]:
            keys = ("num_ack_pending", "num_redelivered", "num_pending")
            places = [
                {k: v for k, v in consumer[key].items() if k.endswith("seq")} for key in ("delivered", "ack_floor")
            ]
            consumers[consumer["name"]] = [places, *(consumer[key] for key in keys)]
        facts = ("messages", "first_seq", "last_seq", "num_deleted", "deleted")
        same = ("subjects", "retention", "max_msgs_per_subject", "compression", "allow_msg_ttl", "deny_delete")
        found[name] = {
            "state": {key: state.get(key) for key in facts} if state["messages"] else state["last_seq"],
            "config": {key: config.get(key) or None for key in same},  # an older server has no word for what it lacks
            "messages": messages,
            "consumers": consumers,
        }
    return found


def run(main_part: Callable[[], Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(60):
            return await main_part()

    return asyncio.run(bounded())


def written(directory: Path, *, account: bool = False, binary: Path | None = None) -> tuple[Path, dict[str, Any]]:
    """A store of the real server, and how it describes it."""
    directory.mkdir()
    file = directory / "server.conf"
    file.write_text(CONFIG if account else "")
    login: Any = {"user": "a", "password": "a"} if account else {}
    with start_nats_server(directory, "-c", str(file), binary=binary) as server:

        async def work() -> dict[str, Any]:
            async with await headwater.connect(server.url, **login) as client:
                await fill(client)
                return await describe(client)

        described = run(work)
    return directory / "js", described


def served(store: Path, *, account: bool = False) -> dict[str, Any]:
    """How ours describes a store."""
    login: Any = {"user": "a", "password": "a"} if account else {}

    async def work() -> dict[str, Any]:
        accounts = (ACCOUNT,) if account else ()
        async with (
            headwater.Broker(jetstream=True, store_dir=store, accounts=accounts) as broker,
            await headwater.connect(broker.url, **login) as client,
        ):
            return await describe(client)

    found: dict[str, Any] = run(work)
    return found


@pytest.fixture(scope="module")
def store_of_nats(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    return written(tmp_path_factory.mktemp("import") / "nats")


def copy(store: Path, to: Path) -> Path:
    import shutil

    return Path(shutil.copytree(store, to))


@pytest.mark.parametrize("index", ["with its index", "without its index"])
def test_every_stream_comes_over_as_the_real_server_has_it(
    store_of_nats: tuple[Path, dict[str, Any]], tmp_path: Path, index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store, described = store_of_nats
    source = copy(store, tmp_path / "source")
    if index == "without its index":
        for path in source.rglob("index.db"):
            path.unlink()
    assert main(["store", "import", str(source), "--store-dir", str(tmp_path / "ours"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["streams"]
    assert not any(one["notes"] or one["problems"] for one in printed)
    assert {one["stream"]: one["messages"] for one in printed} == {
        name: len(found["messages"]) for name, found in described.items()
    }
    assert served(tmp_path / "ours") == described


@pytest.mark.skipif(
    not older_nats_servers(), reason="HEADWATER_OLD_NATS_SERVERS names no older nats-server: none wrote a store"
)
@pytest.mark.parametrize("binary", older_nats_servers(), ids=str)
def test_the_store_of_an_older_server_comes_over_as_it_has_it(
    binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, described = written(tmp_path / "nats", binary=binary)
    assert main(["store", "import", str(store), "--store-dir", str(tmp_path / "ours"), "--json"]) == 0
    assert not any(one["notes"] or one["problems"] for one in json.loads(capsys.readouterr().out)["streams"])
    assert served(tmp_path / "ours") == described


def test_accounts_keep_their_streams(tmp_path: Path) -> None:
    store, described = written(tmp_path / "nats", account=True)
    level = logging.getLogger("headwater").level
    assert main(["store", "import", str(store), "--store-dir", str(tmp_path / "ours")]) == 0
    assert logging.getLogger("headwater").level == level  # it is quiet while the import runs, and no longer
    assert served(tmp_path / "ours", account=True) == described
    assert served(tmp_path / "ours" / "elsewhere") == {}


def test_what_is_damaged_is_said_and_the_rest_comes_over(
    store_of_nats: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, described = store_of_nats
    source = copy(store, tmp_path / "source")
    streams = source / "jetstream" / "$G" / "streams"
    block = streams / "PLAIN" / "msgs" / "1.blk"
    data = bytearray(block.read_bytes())
    at = data.index(b"20" * 20)  # the payload of sequence 21
    data[at] ^= 1
    block.write_bytes(data)
    (streams / "PLAIN" / "obs" / "c2" / "meta.inf").write_bytes(b"\0\1")
    (streams / "FRESH" / "meta.inf").write_bytes(b"{")
    (streams / "EMPTIED" / "meta.key").write_bytes(b"secret")
    torn = streams / "PURGED" / "msgs" / "1.blk"
    torn.write_bytes(torn.read_bytes()[:-5])
    assert main(["store", "import", str(source), "--store-dir", str(tmp_path / "ours")]) == 1
    printed = capsys.readouterr().out
    assert "1.blk: 77 bytes at " in printed
    assert "the checksum of sequence 21 is wrong" in printed
    assert 'consumer "c2" is left out' in printed
    assert "$G > FRESH: NOT taken: meta.inf cannot be read" in printed
    assert "$G > EMPTIED: NOT taken: the stream is encrypted" in printed
    assert "a record has no possible length" in printed
    found = served(tmp_path / "ours")
    assert set(found) == set(described) - {"FRESH", "EMPTIED"}
    lost = described["PLAIN"]["messages"].copy()
    lost.pop(21)
    assert found["PLAIN"]["messages"] == lost
    assert set(found["PLAIN"]["consumers"]) == {"c1", "new"}
    for name in ("HEADS", "KV_box"):
        assert found[name] == described[name]


def test_a_check_only_reads(
    store_of_nats: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, _ = store_of_nats
    assert main(["store", "import", str(store), "--check"]) == 0
    assert "$G > PLAIN: 45 messages (3 to 50), 3 consumers" in capsys.readouterr().out
    assert main(["store", "import", str(tmp_path), "--check"]) == 1
    assert "there is no stream of nats-server under" in capsys.readouterr().err


def test_a_second_import_changes_nothing_and_says_so(
    store_of_nats: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, described = store_of_nats
    command = ["store", "import", str(store), "--store-dir", str(tmp_path / "ours")]
    assert main(command) == 0
    assert main(command) == 1
    assert "stream name already in use" in capsys.readouterr().out
    assert served(tmp_path / "ours") == described
