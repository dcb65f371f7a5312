"""Every page has the fields of nats-server's, but for those that are listed with a reason; and none of its own."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.field_names import names
from support.monitored import ask, monitored, monitored_nats_server, work

from headwater.monitoring import connz, interest, jsz, varz
from headwater.net.journal import KINDS

WRITES = ("batches", "sync_p50", "sync_p99", "ack_p50", "ack_p99", "refused", "waiting_messages", "waiting_bytes")
MEASURED = dict.fromkeys(
    ("writes", *(f"writes.{name}" for name in WRITES)), "what the disk does to publishers"
) | dict.fromkeys(("disk", "disk.free", "disk.size"), "how much room is left")

ADDED = {
    "varz": {
        "jetstream.config.sync": "when a stream is made durable",
        "jetstream.config.sync_always": "as nats-server",
        "read_pauses": "how often reads waited for more, which delays everybody by 0.1 ms",
        "events": "how often what an operator must see has happened",
        **{f"events.{kind}": "the same, by kind" for kind in KINDS},
        **{f"jetstream.stats.{name}": reason for name, reason in MEASURED.items()},
    },
    "jsz": {
        "config.sync": "when a stream is made durable",
        "config.sync_always": "as nats-server",
        **MEASURED,
        **{
            f"account_details.stream_detail.{name}": reason
            for name, reason in MEASURED.items()
            if name.rpartition(".")[2] in ("writes", "refused", "waiting_messages", "waiting_bytes")
        },
    },
}
"""What is here and not there."""

PAGES = {
    "/varz": varz.OMITTED,
    "/connz": {},
    "/connz?subs=1": {},
    "/connz?subs=detail&auth=1": {},
    "/connz?state=closed": connz.OMITTED,
    "/subsz": interest.OMITTED,
    "/subsz?subs=1&acc=$G": interest.OMITTED,
    "/accountz": {},
    "/accountz?acc=$G": interest.OMITTED,
    "/accstatz": {},
    "/routez": {},
    "/leafz": {},
    "/gatewayz": {},
    "/healthz": {},
    "/jsz": jsz.OMITTED,
    "/jsz?accounts=1&streams=1&consumers=1&config=1": jsz.OMITTED,
}


def theirs(directory: Path) -> dict[str, Any]:
    with monitored_nats_server(directory) as (port, http):
        work(port).close()
        link = work(port)
        answers = {page: ask(http, page).document for page in PAGES}
        link.close()
    return answers


async def ours(directory: Path) -> dict[str, Any]:
    async with monitored(jetstream=True, store_dir=directory, server_name="n") as server:
        (await asyncio.to_thread(work, server.broker.port)).close()
        link = await asyncio.to_thread(work, server.broker.port)
        answers = {page: (await server.ask(page)).document for page in PAGES}
        link.close()
    return answers


@pytest.mark.interop
def test_pages_have_nats_servers_fields(tmp_path: Path) -> None:
    real, made = theirs(tmp_path / "theirs"), asyncio.run(ours(tmp_path / "ours"))
    differences = {}
    for page, omitted in PAGES.items():
        there, here = names(real[page]), names(made[page])
        missing = {f"-{name}" for name in there - here if not _covered(name, omitted)}
        own = {f"+{name}" for name in here - there if name not in ADDED.get(page.strip("/").partition("?")[0], {})}
        if missing | own:
            differences[page] = sorted(missing | own)
    assert differences == {}


def _covered(name: str, omitted: dict[str, str]) -> bool:
    """Whether the field, or a block around it, is listed; a last name alone counts in any block."""
    return any(
        name == listed or name.startswith(f"{listed}.") or name.rpartition(".")[2] == listed for listed in omitted
    )
