"""The checks of a remote before it is dialled."""

import pytest

from headwater.leaf.dialling import check_remote
from headwater.options.leaf import RemoteOptions


def test_a_misspelt_scheme_is_dialled_without_encryption_and_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    check_remote(RemoteOptions(urls=("tsl://user:secret@hub.example.com:7422",)))
    (warning,) = caplog.messages
    assert "tsl://hub.example.com:7422" in warning and "secret" not in warning


@pytest.mark.parametrize("url", ["hub:7422", "nats://hub", "nats-leaf://hub", "leaf://hub", "tls://hub", "ws://hub"])
def test_known_schemes_bring_no_warning(url: str, caplog: pytest.LogCaptureFixture) -> None:
    check_remote(RemoteOptions(urls=(url,)))
    assert not caplog.messages
