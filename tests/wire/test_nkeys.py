"""Seeds: decoded, checked, never shown. The vectors have nsc's encoding, as in the NATS documentation."""

import base64

import pytest
from nacl.signing import VerifyKey

from headwater.errors import ConfigError
from headwater.wire.nkeys import KeyPair, is_seed

SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"  # from the NATS examples
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"


def test_the_public_key_of_a_seed_is_the_one_that_nsc_prints() -> None:
    assert KeyPair(SEED).public_key == PUBLIC


def test_what_has_the_form_of_a_seed_is_told_from_a_path() -> None:
    assert is_seed(SEED) and is_seed(SEED[:-4]) and is_seed("SA" + SEED[2:])
    assert not any(map(is_seed, ["", "SEED", "user.nk", f"/{SEED}", f"{SEED}.nk", f" {SEED}", PUBLIC]))


def test_a_signature_verifies_with_the_public_key() -> None:
    key = KeyPair(f" {SEED}\n")
    signature = base64.urlsafe_b64decode(key.sign("a-nonce") + "==")
    raw = base64.b32decode(PUBLIC)
    VerifyKey(raw[1:33]).verify(b"a-nonce", signature)


@pytest.mark.parametrize(
    ("seed", "why"),
    [
        ("", "checksum"),
        ("hello world", "base32"),
        ("SÜ", "base32"),
        (SEED.replace("HUDX", "HUDY"), "checksum"),
        (SEED[:20], "checksum|base32"),
        (PUBLIC, "no nkey seed"),
        ("SAAMOKQ5DVXTZXJRQVFWTZVVZMTLRDYJ4MFRKQ7LI7YXWLMHZPHBBWPEEU", "checksum|an account"),
    ],
)
def test_anything_but_a_users_seed_is_refused_without_quoting_it(seed: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        KeyPair(seed)
    assert not seed or seed not in str(caught.value)


def test_a_key_pair_shows_its_public_half_only() -> None:
    assert repr(KeyPair(SEED)) == f"<KeyPair {PUBLIC}>"
