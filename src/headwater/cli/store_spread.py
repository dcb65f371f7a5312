"""`headwater store spread DIR --workers N`: the streams of a store directory for `serve --workers N --spread_streams`.

With `--workers 1` they are one broker's again. No broker may have the directory open. Exit status: 0 when all streams are
in their places, 1 when they could not be moved, 2 for a wrong command line.
"""

import argparse

from headwater.durable_files.files import OsFiles
from headwater.jetstream_workers.moving import move


def main(argv: list[str]) -> int:
    """The verb `store spread`."""
    parser = argparse.ArgumentParser(
        prog="headwater store spread", description="Move streams between workers' folders."
    )
    parser.add_argument("directory", help="the store directory")
    parser.add_argument("--workers", type=int, required=True, help="for how many workers; 1: for one broker")
    arguments = parser.parse_args(argv)
    moved = move(OsFiles(), arguments.directory.rstrip("/") or "/", arguments.workers)
    layout = "one broker" if arguments.workers == 1 else f"{arguments.workers} workers"
    print(f"{arguments.directory} is for {layout} now; {moved} streams were moved")
    return 0
