"""docs/security.md lists every published advisory once, and each test that it names is there."""

import re

from support.checkout import ROOT

ROW = re.compile(r"^\| (?P<name>[^|]+) \| [^|]+ \| [^|]+ \| `(?P<test>[^`]+)` \|$", re.MULTILINE)


def rows() -> list[tuple[str, str]]:
    page = (ROOT / "docs" / "security.md").read_text()
    return ROW.findall(page[page.index("## Published advisories") :])


def test_each_advisory_of_nats_server_is_listed_once() -> None:
    names = [name for name, _ in rows() if re.fullmatch(r"CVE-\d+-\d+|GHSA(-\w{4}){3}", name)]
    assert len(names) == len(set(names)) == 43


def test_the_tests_that_are_named_exist() -> None:
    missing = []
    for name, test in rows():
        path, _, function = test.partition("::")
        place = ROOT / path
        if not place.exists() or (function and f"def {function}(" not in place.read_text()):
            missing.append((name, test))
    assert missing == []
