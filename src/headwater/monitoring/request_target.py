"""Parses the target of an HTTP request like Go's server and router. Pure.

/connz?limit=10&sort=cid        path and query, both still escaped
http://host/varz                a proxy's form of the same
//varz, /a/../varz, /varz/.     not clean: the router redirects to the clean path
"""

import re
from urllib.parse import unquote_plus, urlsplit

from headwater.monitoring.parameters import Parameters

MOST_PARAMETERS = 10_000  # Go's bound

_WRONG_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def split_target(target: bytes) -> tuple[str, str]:
    """Path, still escaped, and query of a request's target. Raises ValueError."""
    text = target.decode("ascii")
    # "//varz" is a path, not a host; there is no fragment in a target.
    parts = urlsplit((text if not text.startswith("/") else f"http://host{text}").replace("#", "%23"))
    if not parts.netloc or _WRONG_ESCAPE.search(parts.path):
        raise ValueError(f"no path: {text!r}")
    return parts.path, parts.query


def parse_query(query: str) -> Parameters:
    """Parse a query. The first of repeated parameters counts, and an invalid one is skipped, as in Go. Raises
    ValueError for too many."""
    parameters: Parameters = {}
    pairs = query.split("&")
    if len(pairs) > MOST_PARAMETERS:
        raise ValueError("too many parameters")
    for pair in pairs:
        if pair and ";" not in pair and not _WRONG_ESCAPE.search(pair):
            name, _, value = pair.partition("=")
            parameters.setdefault(unquote_plus(name), unquote_plus(value))
    return parameters


def clean_path(path: str) -> str:
    """The path without empty and dot segments, as in Go's router; a slash at the end stays.

    Source: Go 1.26, cleanPath in net/http/server.go, path.Clean.
    """
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    return f"/{'/'.join(kept)}{'/' if kept and path.endswith('/') else ''}"
