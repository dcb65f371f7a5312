"""Connection options stand before the verb, too."""

import pytest

from headwater.cli.connection_flags import verb_first


@pytest.mark.parametrize(
    ("words", "moved"),
    [
        (["-s", "URL", "pub", "x"], ["pub", "-s", "URL", "x"]),
        (["--server=URL", "--json", "stream", "ls"], ["stream", "--server=URL", "--json", "ls"]),
        (["pub", "-s", "URL"], ["pub", "-s", "URL"]),
        (["-p", "4222", "serve"], ["-p", "4222", "serve"]),  # no option of a connection: as it was
        (["-s"], ["-s"]),
        (["--json"], ["--json"]),
        ([], []),
    ],
)
def test_the_verb_comes_first(words: list[str], moved: list[str]) -> None:
    assert verb_first(words) == moved
