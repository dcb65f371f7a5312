"""The broker's own keys: only its receiver can open a sealed message."""

import pytest

from headwater.authorization.server_keys import ServerKeys
from headwater.errors import RemoteProtocolError
from headwater.model.nkey import NkeyKind, decode_nkey


def test_a_sealed_message_is_for_one_receiver() -> None:
    ours, theirs, stranger = ServerKeys(), ServerKeys(), ServerKeys()
    sealed = ours.seal(b"who is it?", theirs.xkey)
    assert sealed.startswith(b"xkv1")
    assert theirs.open(sealed, ours.xkey) == b"who is it?"
    for opener, sender, text in (
        (stranger, ours.xkey, sealed),
        (theirs, stranger.xkey, sealed),
        (theirs, ours.xkey, sealed[4:]),
        (theirs, ours.xkey, sealed[:-1]),
        (theirs, ours.xkey, b"xkv1"),
        (theirs, ours.server_id, sealed),
    ):
        with pytest.raises(RemoteProtocolError):
            opener.open(text, sender)


def test_the_id_of_a_server_is_a_key() -> None:
    assert decode_nkey(ServerKeys().server_id, NkeyKind.SERVER) is not None
