"""Queries of the monitoring pages, one by one, on nats-server and on ours: the status, the text of a refusal, the names.

test_field_names.py holds whole pages against each other; here it is the options that count, so what depends on the
moment and what is left out on purpose is not looked at.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.field_names import names
from support.monitored import Answer, ask, monitored, monitored_nats_server, work

from headwater.monitoring import connz, interest, jsz, varz

pytestmark = pytest.mark.interop

OPTIONS = """
/connz sort=cid sort=start sort=subs sort=pending sort=msgs_to sort=msgs_from sort=bytes_to sort=bytes_from sort=last
/connz sort=idle sort=uptime sort=rtt
/connz sort=stop sort=reason sort=bogus sort=CID state=closed&sort=stop state=closed&sort=reason
/connz state=open state=closed state=all state=any state=OPEN state=bogus subs=1 subs=true subs=detail subs=bogus auth=1
/connz auth=x limit=1 limit=0 limit=-1 limit=x limit=9223372036854775807 limit=9223372036854775808 limit=+1 limit=1.5
/connz offset=1 offset=-1 offset=x offset=9223372036854775807 limit=9223372036854775807&offset=9223372036854775807
/connz cid=-1 cid=x cid=+1 cid=18446744073709551615 cid=18446744073709551616
/connz cid=1 cid=999999 acc=$G acc=NOPE user=x&auth=1 mqtt_client=x filter_subject=a.b&acc=$G
/subsz subs=1 subs=x subs=1&limit=1 subs=1&offset=1 test=a.b&subs=1 test=a.* test=a..b acc=$G&subs=1 acc=NOPE&subs=1 limit=x
/routez subs=1 subs=x
/jsz accounts=1 streams=1 consumers=1 config=1 acc=$G acc=NOPE limit=x accounts=x accounts=1&limit=1&offset=0 leader-only=1
/jsz raft=1 streams=1&config=1&accounts=1
/healthz js-enabled-only=true js-server-only=true js-enabled=true js-enabled-only=x stream=S account=NOPE details=true
/healthz account=$G&stream=S account=$G&stream=NOPE account=$G&stream=S&consumer=D account=$G&stream=S&consumer=NOPE
/healthz account=$G&consumer=D
/accountz acc=$G acc=NOPE
/accstatz unused=1 unused=x
/leafz subs=1
/gatewayz accs=1
/ipqueuesz x=y all=x all=1&queues=NOPE
/varz x=y
/nothing x=y
/connz/x x=y
/../varz x=y
"""
QUERIES = [f"{page}?{option}" for page, *options in map(str.split, OPTIONS.split("\n")[1:-1]) for option in options]
LEFT_OUT = {
    *varz.OMITTED,
    *connz.OMITTED,
    *interest.OMITTED,
    *jsz.OMITTED,
    "rtt",
    "sync",
    "sync_always",
    "events",
    "read_pauses",
    "writes",
    "disk",
}
DIFFERENT = {
    "/healthz?details=true": "there is one problem at most in our answer, and it is the same with details",
    "/connz?filter_subject=a.b&acc=$G": "clients are not filtered by subject",
    "/jsz?raft=1": "there is no Raft",
    "/connz?mqtt_client=x": "there is no MQTT, so nobody is found",
}
"""Queries that are answered otherwise, and why."""


def theirs(directory: Path) -> dict[str, Answer]:
    with monitored_nats_server(directory) as (port, http):
        work(port).close()
        link = work(port)
        answers = {query: ask(http, query) for query in QUERIES}
        link.close()
    return answers


async def ours(directory: Path) -> dict[str, Answer]:
    async with monitored(jetstream=True, store_dir=directory, server_name="n") as server:
        (await asyncio.to_thread(work, server.broker.port)).close()
        link = await asyncio.to_thread(work, server.broker.port)
        answers = {query: await server.ask(query) for query in QUERIES}
        link.close()
    return answers


def shape(answer: Answer) -> tuple[int, object]:
    """The status, and the text of what is no JSON, or the names in the document and how long its lists are."""
    if not answer.content_type.startswith("application/json"):
        return answer.status, answer.body.decode().strip()
    document = answer.document
    found = {name for name in names(document) if not _left_out(name)}
    return answer.status, (sorted(found), document.get("error"), counts(document))


def _left_out(name: str) -> bool:
    words = name.split(".")
    blocks = {".".join(words[: end + 1]) for end in range(len(words))}
    return bool(LEFT_OUT & (blocks | set(words)))


def counts(document: dict[str, Any]) -> dict[str, Any]:
    """What must be equal and does not depend on the moment."""
    return {name: document[name] for name in ("limit", "offset", "num_connections", "status") if name in document}


def test_queries_are_answered_as_nats_server_answers_them(tmp_path: Path) -> None:
    real, made = theirs(tmp_path / "theirs"), asyncio.run(ours(tmp_path / "ours"))
    differences = {
        query: (shape(real[query]), shape(made[query]))
        for query in QUERIES
        if query not in DIFFERENT and shape(real[query]) != shape(made[query])
    }
    assert differences == {}
