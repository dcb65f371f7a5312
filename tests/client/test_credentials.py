"""What CONNECT says of us, for each kind of credentials, and that no secret is shown."""

from pathlib import Path

import pytest

from headwater.client.credentials import Credentials, read_creds
from headwater.client.server_url import parse_server_url
from headwater.errors import ConfigError
from headwater.wire.handshake import ConnectOptions

SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
CREDS = f"""-----BEGIN NATS USER JWT-----
eyJ0.eyJq.sig
------END NATS USER JWT------

************************* IMPORTANT *************************

-----BEGIN USER NKEY SEED-----
{SEED}
------END USER NKEY SEED------
"""


def said(credentials: Credentials, url: str = "nats://h", nonce: str = "nonce") -> dict[str, object]:
    filled = credentials.fill(ConnectOptions(), parse_server_url(url), nonce)
    named = ("user", "password", "auth_token", "jwt", "nkey", "sig")
    return {name: value for name in named if (value := getattr(filled, name)) is not None}


def test_user_password_and_token_go_out_as_they_are() -> None:
    assert said(Credentials()) == {}
    assert said(Credentials(user="u", password="p")) == {"user": "u", "password": "p"}
    assert said(Credentials(token="t")) == {"auth_token": "t"}


def test_those_in_the_url_win() -> None:
    assert said(Credentials(user="u", password="p"), "nats://v:q@h") == {"user": "v", "password": "q"}
    assert said(Credentials(user="u", password="p"), "nats://t@h") == {"auth_token": "t"}


def test_an_nkey_signs_the_nonce_from_a_text_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "seed.nk"
    path.write_text(f"# mine\n{SEED}\n")
    for given in (SEED, path, str(path)):
        told = said(Credentials(nkey_seed=given))
        assert told["nkey"] == PUBLIC
        assert len(str(told["sig"])) == 86
        assert "jwt" not in told
    assert said(Credentials(nkey_seed=SEED), nonce="") == {}, "a server without nkeys is told nothing"


def test_a_creds_file_sends_its_jwt_and_a_signature_never_its_seed(tmp_path: Path) -> None:
    path = tmp_path / "user.creds"
    path.write_text(CREDS)
    assert read_creds(path) == ("eyJ0.eyJq.sig", SEED)
    told = said(Credentials(creds=path))
    assert told["jwt"] == "eyJ0.eyJq.sig"
    assert set(told) == {"jwt", "sig"}
    assert SEED not in str(told)
    path.write_text(CREDS.replace("eyJ0", "eyJ1"))
    assert said(Credentials(creds=path))["jwt"] == "eyJ1.eyJq.sig", "it is read anew each time"


@pytest.mark.parametrize("content", ["", "hello", CREDS.replace("SEED", "LEAF"), CREDS.replace("JWT", "JOT"), "\xff"])
def test_a_file_that_holds_something_else_is_a_configuration_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "user.creds"
    path.write_text(content, encoding="latin-1")
    for broken in (Credentials(creds=path), Credentials(nkey_seed=tmp_path / "missing"), Credentials(creds="missing")):
        with pytest.raises(ConfigError) as caught:
            said(broken)
        assert SEED not in str(caught.value)


def test_secrets_are_not_shown() -> None:
    shown = repr(Credentials(user="u", password="s3cret", token="s3cret", nkey_seed="s3cret", creds="path"))
    assert "s3cret" not in shown
    assert "path" in shown
