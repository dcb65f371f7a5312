"""The page at `/`: one document, one style sheet, one script, all from this broker; nothing is loaded from elsewhere.

It reads /historyz every two seconds and the page of the tab that is open, and cannot change anything: every request of it
is a GET, and its content security policy allows no other place, no inline script and no frame around it. The files lie in
`page/`; what the broker fills in is where it stands (`http_base_path`) and the list of pages, which works without scripts.
"""

from collections.abc import Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.monitoring.http import Response

FILES = {"/live.css": "text/css; charset=utf-8", "/live.js": "text/javascript; charset=utf-8"}
POLICY = (
    "default-src 'none'; connect-src 'self'; img-src 'self' data:; script-src 'self'; style-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def file(path: str) -> "Response":
    """One of FILES."""
    from headwater.monitoring.http import Response

    return Response(_read(path.removeprefix("/")), 200, FILES[path])


def index(base: str, pages: Sequence[tuple[str, str]]) -> "Response":
    """The document. `base`: what stands before the paths; `pages`: (path, title) of those in its list."""
    from headwater.monitoring.http import HTML, Response

    links = "".join(
        f'<li><a href="{escape(base + path)}">{escape(title)}</a> <code>{path}</code></li>\n' for path, title in pages
    )
    document = _read("live.html").decode().replace("{base}", escape(base)).replace("{pages}", links)
    return Response(document.encode(), 200, HTML, policy=POLICY)


@cache
def _read(name: str) -> bytes:
    from importlib.resources import files  # here: with pathlib, tempfile and zipfile it is 6 ms of a start

    return (files("headwater.monitoring") / "page" / name).read_bytes()
