"""A JetStream domain, and accounts without JetStream, held against the real nats-server."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.headwater_server import start_headwater
from support.jetstream_pair import API, ask, compare, mask, receive, written
from support.nats_server import start_nats_server

from headwater.client.blocking import BlockingClient
from headwater.client.client import connect
from headwater.client.options import ClientOptions
from headwater.errors import NoResponders, RequestTimeout

pytestmark = pytest.mark.interop

HUB = "$JS.hub.API."
CONFIG = """
jetstream { store_dir: "%s", domain: hub }
accounts {
    A { jetstream: enabled, users: [{ user: a, password: a }] }
    B { users: [{ user: b, password: b }] }
}
"""
WITHOUT_A_STREAM = ["INFO", "STREAM.NAMES", "STREAM.LIST"]
OF_A_STREAM = [
    *("STREAM." + verb for verb in ("CREATE", "UPDATE", "INFO", "DELETE", "PURGE", "SNAPSHOT", "RESTORE")),
    *("STREAM." + verb for verb in ("MSG.GET", "MSG.DELETE", "PEER.REMOVE", "PEER.EVACUATE", "LEADER.STEPDOWN")),
    *("CONSUMER." + verb for verb in ("CREATE", "NAMES", "LIST")),
]
OF_A_CONSUMER = [
    *(
        "CONSUMER." + verb
        for verb in ("DURABLE.CREATE", "INFO", "DELETE", "PAUSE", "UNPIN", "LEADER.STEPDOWN", "CREATE")
    ),
    *("CONSUMER." + verb for verb in ("PEER.REMOVE", "PEER.EVACUATE")),
]


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The real server's, and ours."""
    directory = tmp_path_factory.mktemp("domain")
    for name in ("real", "ours"):
        (directory / f"{name}.conf").write_text(CONFIG % (directory / name / "js"))
    with (
        start_nats_server(directory / "real", "-c", str(directory / "real.conf"), jetstream=False) as real,
        start_headwater(directory / "ours", "-c", str(directory / "ours.conf")) as ours,
    ):
        yield [real.url, ours.url]


def clients_of(urls: list[str], user: str) -> list[BlockingClient]:
    return [BlockingClient.connect(ClientOptions(servers=[url], user=user, password=user)) for url in urls]


@pytest.fixture
def clients(urls: list[str]) -> Iterator[list[BlockingClient]]:
    """A client of the account with streams, of each server, the real one first."""
    made = clients_of(urls, "a")
    yield made
    for client in made:
        client.close()


def shown(client: BlockingClient, subject: str, body: object) -> Any:
    """The answer with its domain, which `mask` takes away."""
    answer = ask(client, subject, body)
    listed = answer["streams"] if "LIST" in subject else []
    return answer.get("domain"), [one.get("domain") for one in listed]


def test_the_api_answers_under_the_name_of_the_domain(clients: list[BlockingClient]) -> None:
    stream = {"name": "D", "subjects": ["d.*"], "allow_direct": True}
    consumer = {"stream_name": "D", "config": {"name": "c", "ack_policy": "explicit"}}
    compare(
        clients,
        [
            (HUB + "INFO", None),
            (HUB + "STREAM.CREATE.D", stream),
            ("d.1", b"x"),
            (HUB + "STREAM.MSG.GET.D", {"seq": 1}),
            (HUB + "STREAM.NAMES", None),
            (HUB + "CONSUMER.CREATE.D.c", consumer),
            (HUB + "CONSUMER.INFO.D.c", None),
            (API + "CONSUMER.NAMES.D", None),
        ],
    )
    for subject, body in [
        (API + "INFO", None),
        (API + "STREAM.INFO.D", None),
        (API + "STREAM.LIST", None),
        (API + "STREAM.UPDATE.D", stream),
        (API + "STREAM.CREATE.E", {"name": "E", "subjects": ["e.*"]}),
        (API + "STREAM.CREATE.D", stream),
        ("d.2", b"y"),
    ]:
        real, ours = (shown(client, subject, body) for client in clients)
        assert ours == real, subject
    compare(clients, [(HUB + "STREAM.DELETE.D", None), (HUB + "STREAM.DELETE.E", None)])


def test_keys_and_chunks_are_reached_through_the_domain(clients: list[BlockingClient]) -> None:
    compare(
        clients,
        [
            (HUB + "STREAM.CREATE.KV_b", {"name": "KV_b", "subjects": ["$KV.b.>"]}),
            (HUB + "STREAM.CREATE.OBJ_o", {"name": "OBJ_o", "subjects": ["$O.o.>", "$OBJ.o.>"]}),
            (HUB + "$KV.b.key", b"value"),
            (HUB + "$OBJ.o.chunk", b"value"),
            (HUB + "STREAM.INFO.KV_b", {"subjects_filter": ">"}),
            (HUB + "STREAM.INFO.OBJ_o", {"subjects_filter": ">"}),
            (HUB + "STREAM.DELETE.KV_b", None),
            (HUB + "STREAM.DELETE.OBJ_o", None),
        ],
    )


@pytest.mark.parametrize(
    "subject", ["$JS.spoke.API.INFO", HUB + "FROB", HUB + "$KV.none.x", HUB + "CONSUMER.MSG.NEXT.S.none", HUB + "X.Y"]
)
def test_what_nobody_serves_under_a_domain_has_no_responders(clients: list[BlockingClient], subject: str) -> None:
    for client in clients:
        with pytest.raises(NoResponders):
            client.request(subject, b"", timeout=10.0)


@pytest.mark.parametrize("account", ["A", "a name that is long"])
@pytest.mark.parametrize("scoped", [False, True])
def test_acks_of_both_forms_are_taken_and_the_configured_one_is_given_out(
    tmp_path: Path, account: str, scoped: bool
) -> None:
    flag = f"feature_flags {{ js_ack_fc_v2: {str(scoped).lower()} }}"
    text = (
        """
        jetstream { store_dir: "%s", domain: hub }
        accounts { "%s" { jetstream: enabled, users: [{ user: a, password: a }] } }
        no_auth_user: a
    """
        + flag
    )

    async def acknowledge(url: str) -> object:
        async with await connect(url) as client:
            requests: list[tuple[str, Any]] = [
                (HUB + "STREAM.CREATE.S", {"name": "S", "subjects": ["s"]}),
                (
                    HUB + "CONSUMER.CREATE.S.c",
                    {"stream_name": "S", "config": {"name": "c", "ack_policy": "explicit", "ack_wait": 10**12}},
                ),
            ]
            for subject, body in requests:
                assert b'"error"' not in (await client.request(subject, json.dumps(body).encode())).data
            for number in range(3):
                await client.request("s", b"%d" % number)
            received = await receive(url, HUB + "CONSUMER.MSG.NEXT.S.c", b"3", 3)
            replies = [message.reply or "" for message in received]
            long = [reply if scoped else "" for reply in replies]
            if not scoped:
                tokens = [reply.split(".") for reply in replies]
                long = [".".join([*parts[:2], "hub", account_hash(account), *parts[2:]]) for parts in tokens]
            short = [".".join([*reply.split(".")[:2], *reply.split(".")[4:]]) for reply in long]
            answers = [
                (await client.request(short[0], b"+ACK")).data,
                (await client.request(long[1], b"+ACK")).data,
                (await client.request(long[2] + ".more.tokens", b"+ACK")).data,
            ]
            with pytest.raises(NoResponders):
                await client.request(long[2].replace(".hub.", ".spoke."), b"+ACK")
            info = json.loads((await client.request(API + "CONSUMER.INFO.S.c", b"")).data)
            return written(received), answers, mask(info, {})["ack_floor"], mask(info, {})["num_ack_pending"]

    found = []
    for name in ("real", "ours"):
        (tmp_path / f"{name}.conf").write_text(text % (tmp_path / name / "js", account))
        start: Any = start_nats_server if name == "real" else start_headwater
        options = {"jetstream": False} if name == "real" else {}
        with start(tmp_path / name, "-c", str(tmp_path / f"{name}.conf"), **options) as server:
            found.append(asyncio.run(acknowledge(server.url)))
    assert found[1] == found[0]


def account_hash(name: str) -> str:
    return {"A": "NUmM6cRx", "a name that is long": "jfvPdRkG"}[name]


def test_an_account_without_jetstream_is_told_so(urls: list[str]) -> None:
    made = clients_of(urls, "b")
    verbs = [
        *WITHOUT_A_STREAM,
        *(verb + ".S" for verb in OF_A_STREAM),
        *(verb + ".S.c" for verb in OF_A_CONSUMER),
        "CONSUMER.CREATE.S.c.filter",
    ]
    steps: list[tuple[str, object]] = [(prefix + verb, None) for verb in verbs for prefix in (API, HUB)]
    compare(made, [*steps, (API + "STREAM.CREATE.S", b"no document"), (API + "CONSUMER.UNPIN.S.c", {"group": "g"})])
    for client in made:
        for subject in ("CONSUMER.MSG.NEXT.S.c", "DIRECT.GET.S", "DIRECT.GET.S.key"):
            with pytest.raises(NoResponders):
                client.request(API + subject, b"", timeout=10.0)
        for subject in ("FROB", "CONSUMER.RESET.S.c"):
            with pytest.raises(RequestTimeout):
                client.request(API + subject, b"", timeout=0.2)
        client.close()


def test_an_account_that_imports_the_api_reaches_the_streams_of_the_other(tmp_path: Path) -> None:
    text = """
        jetstream { store_dir: "%s" }
        accounts {
            A { jetstream: enabled, users: [{ user: a, password: a }]
                exports: [{ service: "$JS.API.>", response: stream }] }
            B { users: [{ user: b, password: b }], imports: [{ service: { account: A, subject: "$JS.API.>" } }] }
        }
    """
    for name in ("real", "ours"):
        (tmp_path / f"{name}.conf").write_text(text % (tmp_path / name / "js"))
    with (
        start_nats_server(tmp_path / "real", "-c", str(tmp_path / "real.conf"), jetstream=False) as real,
        start_headwater(tmp_path / "ours", "-c", str(tmp_path / "ours.conf")) as ours,
    ):
        made = clients_of([real.url, ours.url], "b")
        compare(made, [(API + "STREAM.CREATE.S", {"name": "S", "subjects": ["s"]}), (API + "STREAM.NAMES", None)])
        for client in made:
            client.close()
