"""How these tests read a configuration: from a string, with files that exist only here."""

from collections.abc import Callable, Mapping

import pytest

from headwater.server.config.draft import Draft
from headwater.server.config.schema import load

Load = Callable[..., Draft]


@pytest.fixture
def load_text() -> Load:
    """`load_text(text, files={path: text}, environment={…})`: the draft that a file `server.conf` makes."""

    def read(text: str, files: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None) -> Draft:
        there = {"server.conf": text, **(files or {})}

        def read_file(path: str) -> str:
            if path not in there:
                raise FileNotFoundError(2, "No such file or directory", path)
            return there[path]

        return load("server.conf", read_file, environment or {})

    return read


@pytest.fixture
def refusal(load_text: Load) -> Callable[..., str]:
    """`refusal(text)`: what is wrong with it, one remark a line."""

    def read(text: str, files: Mapping[str, str] | None = None) -> str:
        from headwater.errors import ConfigError

        with pytest.raises(ConfigError) as caught:
            load_text(text, files).finish()
        return caught.value.message

    return read
