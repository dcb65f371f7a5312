"""Tokens: every malformed one is refused, and no refusal quotes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.operator_chain import Chain, Key, base64url, token

from headwater.errors import RemoteProtocolError
from headwater.model.nkey import NkeyKind
from headwater.wire.jwt import decode_account, decode_operator, decode_user

CHAIN = Chain()
USER = Key(NkeyKind.USER, 1)
GOOD = CHAIN.user(USER, CHAIN.a, pub={"allow": ["a"]}, claims={"exp": 5, "name": "u"})
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=5), inner, max_size=2)),
    max_leaves=5,
)


def test_claims_are_read_when_the_signature_holds() -> None:
    about, body = decode_user(GOOD)
    assert (about.issuer, about.subject, about.name, about.expires) == (CHAIN.a.public, USER.public, "u", 5)
    assert body.pub.allow == ["a"]
    assert decode_operator(CHAIN.operator_jwt)[1].system_account == CHAIN.system.public
    assert decode_account(CHAIN.accounts[CHAIN.a.public])[0].issuer == CHAIN.operator.public


@pytest.mark.parametrize("decode", [decode_account, decode_operator])
def test_a_token_is_only_accepted_as_its_own_kind(decode: object) -> None:
    with pytest.raises(RemoteProtocolError):
        decode(GOOD)  # type: ignore[operator]


@given(st.integers(0, len(GOOD) - 1), st.characters())
def test_one_changed_letter_is_enough(position: int, letter: str) -> None:
    changed = GOOD[:position] + letter + GOOD[position + 1 :]
    try:
        decode_user(changed)
    except RemoteProtocolError as error:
        assert changed[:20] not in str(error)
    else:
        # The last letter of a part has bits that base64 does not use.
        assert changed == GOOD or position == len(GOOD) - 1


@given(st.one_of(st.text(), st.lists(st.binary().map(base64url), min_size=3, max_size=3).map(".".join)))
def test_any_text_is_refused(text: str) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_user(text)


@given(
    json_values, st.dictionaries(st.sampled_from(["pub", "sub", "resp", "subs", "src", "times", "type"]), json_values)
)
def test_claims_of_any_shape_are_read_or_refused(anything: object, nats: dict[str, object]) -> None:
    for body in (anything, {"type": "user", "version": 2, **nats}):
        try:
            decode_user(token(CHAIN.a, USER.public, body))  # type: ignore[arg-type]
        except RemoteProtocolError:
            continue


def test_a_token_larger_than_any_has_to_be_is_not_even_taken_apart() -> None:
    with pytest.raises(RemoteProtocolError, match="no JWT"):
        decode_user("a." * (1 << 20))
