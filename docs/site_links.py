"""A hook of MkDocs: links from the documents to sources are links in a checkout, and words on the site.

`./hw docs` runs it; tests/meta/test_site.py runs it without MkDocs.
"""

import re
from typing import Any

OUTSIDE = re.compile(
    r"\[([^\]]+)\]\((?:\.\./)+(?!adr/)(?:src|tests|examples|deploy|benchmarks|README\.md|CHANGELOG\.md)[^)]*\)"
)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The text of a page as the site has it."""
    return OUTSIDE.sub(r"\1", markdown)
