"""The names in a JSON document, to hold two servers' documents against each other."""

from typing import Any


def names(document: Any, path: str = "") -> set[str]:
    """All field names of a document, by path; of a list those of any element."""
    if isinstance(document, list):
        return set().union(*(names(element, path) for element in document))
    if not isinstance(document, dict):
        return set()
    if path in ("http_req_stats", "feature_flags") or path.endswith("metadata"):
        return set()  # their names are values
    found: set[str] = set()
    for name, value in document.items():
        inner = f"{path}.{name}" if path else name
        found |= {inner} | names(value, inner)
    return found
