"""`headwater config check FILE`: what is wrong with a configuration file, all of it, without starting anything.

Also says which fields change nothing here. The exit status is 0 for a file that `headwater serve -c` would take, 1 for
one it would not; with --strict a warning counts as well.
"""

import argparse
import os
import sys

from headwater.cli.serve_setup import read_file
from headwater.errors import ConfigError
from headwater.server.config.draft import ServerConfig
from headwater.server.config.schema import load


def main(argv: list[str]) -> int:
    """The verb `config`."""
    parser = argparse.ArgumentParser(prog="headwater config", description="Configuration files.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="check")
    checker = verbs.add_parser("check", help="say what is wrong with a file", description="Check a configuration file.")
    checker.add_argument("file")
    checker.add_argument("--strict", action="store_true", help="warnings count as errors")
    arguments = parser.parse_args(argv)
    return check(arguments.file, strict=arguments.strict)


def check(path: str, strict: bool = False) -> int:
    """Check one file; remarks go to stderr, one a line. Returns the exit status."""
    try:
        draft = load(path, read_file, os.environ)
        config: ServerConfig = draft.finish()
    except ConfigError as error:
        print("\n".join(f"headwater: {line}" for line in str(error).splitlines()), file=sys.stderr)
        return 1
    for warning in config.warnings:
        print(f"headwater: warning: {warning}", file=sys.stderr)
    print(f"headwater: configuration file {path} is valid ({config.digest})", file=sys.stderr)
    return int(strict and bool(config.warnings))
