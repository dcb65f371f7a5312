"""`headwater store import DIR --store-dir NEW`: import the streams of a nats-server into our own store.

DIR is the `store_dir` of a stopped nats-server; NEW is a store directory that no broker has open. Each stream is read and
then restored by a broker inside this process, like any backup: either all of it is imported, or none.

`--check` only reads the streams, and reports what would be imported.

Exit status: 0 when everything was imported, 1 when something was not, 2 for a wrong command line.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path

from headwater.operations.nats_store import find_streams
from headwater.server.store_import import SYSTEM, Outcome, check, import_streams


def main(argv: list[str]) -> int:
    """The verb `store`; `spread` is in store_spread.py."""
    if argv[:1] == ["spread"]:
        from headwater.cli.store_spread import main as spread

        return spread(argv[1:])
    parser = argparse.ArgumentParser(prog="headwater store", description="Bring the streams of a nats-server over.")
    parser.add_argument("what", choices=["import", "spread"], help="`store spread -h` is about the other one")
    parser.add_argument("directory", type=Path, help="the store_dir of a nats-server that has ended")
    parser.add_argument("--store-dir", type=Path, help="the store directory of Headwater that gets them")
    parser.add_argument("--check", action="store_true", help="only say what would come over")
    parser.add_argument("--json", "-j", action="store_true", help="one JSON document")
    arguments = parser.parse_args(argv)
    if arguments.store_dir is None and not arguments.check:
        parser.error("name the store directory of Headwater: --store-dir DIR")
    streams = [one for one in find_streams(arguments.directory) if one.account != SYSTEM]
    outcomes: list[Outcome] = []
    for account in dict.fromkeys(one.account for one in streams):
        own = [one for one in streams if one.account == account]
        if not arguments.check:
            arguments.store_dir.mkdir(parents=True, exist_ok=True)
        outcomes += check(own) if arguments.check else asyncio.run(import_streams(arguments.store_dir, account, own))
    if arguments.json:
        print(json.dumps({"streams": [outcome.document() for outcome in outcomes]}, indent=1))
    else:
        for outcome in outcomes:
            print("\n".join(outcome.lines()))
    lost = [one for one in outcomes if one.failure or (one.converted is not None and one.converted.problems)]
    if lost and not arguments.json:
        print(
            f"headwater store: {len(lost)} of {len(outcomes)} streams did not come over as they were", file=sys.stderr
        )
    return 1 if lost else 0
