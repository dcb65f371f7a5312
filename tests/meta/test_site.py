"""The documentation site, checked without building it: `./hw docs` builds it, and takes a minute to install what it needs.

Links to files are checked by test_documents.py; here are the places in a page that they name, and what the site consists of.
"""

import importlib.util
import re
from pathlib import Path

import pytest
import yaml
from support.checkout import ROOT, SOURCE

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text())


def slugs(page: Path) -> set[str]:
    """The anchors of a page's headings, as MkDocs makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text()), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", heading)
        words = re.sub(r"[^\w\s-]", "", text.encode("ascii", "ignore").decode()).strip().lower()
        slug = re.sub(r"[-\s]+", "-", words)
        found.add(slug if slug not in found else f"{slug}_1")
    return found


def listed(nav: object) -> list[str]:
    """The files that the navigation names."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    assert not isinstance(parts, int)
    return [name for part in parts for name in listed(part)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_place_in_a_page_that_a_link_names_is_there(page: Path) -> None:
    links = re.findall(r"\]\(([\w./-]*\.md)?#([\w-]+)\)", FENCED.sub("", page.read_text()))
    missing = [f"{file}#{place}" for file, place in links if place not in slugs(page.parent / file if file else page)]
    assert missing == []


def test_the_navigation_has_every_page_but_the_single_decisions() -> None:
    named = listed(CONFIG["nav"])
    assert len(named) == len(set(named))
    wanted = {str(page.relative_to(DOCS)) for page in PAGES}
    assert {page for page in wanted - set(named) if not re.match(r"adr/0.*", page)} == set()
    assert set(named) - wanted == set()
    assert CONFIG["strict"] is True


def test_the_api_pages_name_what_the_sources_have() -> None:
    named = [name for page in PAGES for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)]
    assert len(named) > 20
    for name in named:
        path = SOURCE.joinpath(*name.split("."))
        if path.with_suffix(".py").exists():
            continue
        text = path.parent.with_suffix(".py").read_text()
        assert re.search(rf"\b(?:class|def|import) .*\b{path.name}\b", text), name


def test_the_site_has_words_where_a_checkout_has_links_to_sources() -> None:
    spec = importlib.util.spec_from_file_location("site_links", DOCS / "site_links.py")
    assert spec is not None and spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    left = "\n".join(hook.on_page_markdown(page.read_text()) for page in PAGES)
    assert [link for link in re.findall(r"\]\((\.\./[^)]+)\)", left) if (DOCS / link[3:]).exists() is False] == []
    assert hook.on_page_markdown("see [walk](../src/walk.py), [a](b.md)") == "see walk, [a](b.md)"


def test_a_workflow_builds_the_site_by_the_verb_of_developers() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "docs.yml").read_text())["jobs"]
    assert "./hw docs" in [step.get("run") for step in jobs["site"]["steps"]]
