"""`headwater trace SUBJECT [BODY]`: the path of a message through the servers, with the terms of `nats trace`."""

import sys
from typing import Annotated

import msgspec

from headwater.cli.commands import Argument, Commands, Option
from headwater.cli.nats_session import current, headers_from, run_app
from headwater.client.client import Client
from headwater.operations import tracing

trace_app = Commands("trace")


def trace(arguments: list[str]) -> int:
    """The verb `trace`."""
    return run_app(trace_app, "trace", arguments)


@trace_app.command()
def trace_message(
    subject: str,
    body: Annotated[str, Argument(help="the payload")] = "",
    headers: Annotated[list[str], Option("-H", "--header", help="Name:value, as often as you like")] = [],  # noqa: B006 - read only
    deliver: Annotated[bool, Option("--deliver", help="deliver it; otherwise it is only traced")] = False,
) -> None:
    """Send a message that is traced, and print what each server on its way does with it. Nobody gets it without --deliver.

    The exit status is 1 when not every server has reported within --timeout."""
    session = current()
    pairs = headers_from(headers)

    async def run(client: Client) -> None:
        found = await tracing.trace(client, subject, body.encode(), pairs, session.timeout, deliver=deliver)
        if session.json:
            reports = [report._asdict() for report in found.reports.values()]
            print(msgspec.json.encode({"reports": reports, "missing": found.missing}).decode())
        else:
            print("\n".join(found.lines()))
        if found.missing:
            print(f"not every server has reported: {len(found.missing)} missing", file=sys.stderr)
            raise SystemExit(1)

    session.run(run)
