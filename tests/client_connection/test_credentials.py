"""What CONNECT says of us, for each kind of credentials; servers that demand them; and that no secret is shown."""

import base64
import binascii
import json
from pathlib import Path

import pytest
from support.configured_servers import ServerShelf, shelf
from support.operator_chain import Chain, Key
from support.scripted_server import finish, until

import headwater
from headwater.client_connection.credentials import Credentials, identity_of, read_creds
from headwater.client_connection.server_url import parse_server_url
from headwater.errors import AuthorizationError, ConfigError, HeadwaterError
from headwater.model.nkey import NkeyKind
from headwater.wire.handshake import ConnectOptions

__all__ = ["shelf"]

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


def fields_of(credentials: Credentials, url: str = "nats://h", nonce: str = "nonce") -> dict[str, object]:
    filled = credentials.fill(ConnectOptions(), parse_server_url(url), nonce)
    named = ("user", "password", "auth_token", "jwt", "nkey", "sig")
    return {name: value for name in named if (value := getattr(filled, name)) is not None}


def test_user_password_and_token_go_out_as_they_are() -> None:
    assert fields_of(Credentials()) == {}
    assert fields_of(Credentials(user="u", password="p")) == {"user": "u", "password": "p"}
    assert fields_of(Credentials(token="t")) == {"auth_token": "t"}


def test_those_in_the_url_win() -> None:
    assert fields_of(Credentials(user="u", password="p"), "nats://v:q@h") == {"user": "v", "password": "q"}
    assert fields_of(Credentials(user="u", password="p"), "nats://t@h") == {"auth_token": "t"}


def test_an_nkey_signs_the_nonce_from_a_text_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "seed.nk"
    path.write_text(f"# mine\n{SEED}\n")
    for given in (SEED, path, str(path)):
        reported = fields_of(Credentials(nkey_seed=given))
        assert reported["nkey"] == PUBLIC
        assert len(str(reported["sig"])) == 86
        assert "jwt" not in reported
    assert fields_of(Credentials(nkey_seed=SEED), nonce="") == {}, "a server without nkeys is told nothing"


def test_a_creds_file_sends_its_jwt_and_a_signature_never_its_seed(tmp_path: Path) -> None:
    path = tmp_path / "user.creds"
    path.write_text(CREDS)
    assert read_creds(path) == ("eyJ0.eyJq.sig", SEED)
    reported = fields_of(Credentials(creds=path))
    assert reported["jwt"] == "eyJ0.eyJq.sig"
    assert set(reported) == {"jwt", "sig"}
    assert SEED not in str(reported)
    path.write_text(CREDS.replace("eyJ0", "eyJ1"))
    assert fields_of(Credentials(creds=path))["jwt"] == "eyJ1.eyJq.sig", "it is read anew each time"


@pytest.mark.parametrize(
    "credentials",
    [Credentials(nkey_seed=given) for given in (SEED[:-9], SEED.lower(), f"{SEED}!", f"# mine\n{SEED}\n")]
    + [Credentials(creds=CREDS)],
)
def test_a_secret_in_place_of_its_path_is_not_quoted_in_the_error(credentials: Credentials) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        fields_of(credentials)
    shown = f"{caught.value} {caught.value.value} {caught.value.hint}".upper()
    assert SEED[:20] not in shown and "EYJ0" not in shown


@pytest.mark.parametrize("content", ["", "hello", CREDS.replace("SEED", "LEAF"), CREDS.replace("JWT", "JOT"), "\xff"])
def test_a_file_that_holds_something_else_is_a_configuration_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "user.creds"
    path.write_text(content, encoding="latin-1")
    for broken in (Credentials(creds=path), Credentials(nkey_seed=tmp_path / "missing"), Credentials(creds="missing")):
        with pytest.raises(ConfigError) as caught:
            fields_of(broken)
        assert SEED not in str(caught.value)


def test_secrets_are_not_shown() -> None:
    shown = repr(Credentials(user="u", password="s3cret", token="s3cret", nkey_seed="s3cret", creds="path"))
    assert "s3cret" not in shown
    assert "path" in shown


# ── on servers that demand them ──

LISTEN = 'listen: "127.0.0.1:-1"\n'
CHAIN = Chain()
USER = Key(NkeyKind.USER, 1)
DEMANDS = {
    "user": LISTEN + "authorization { user: u, password: p }",
    "token": LISTEN + "authorization { token: t0ken }",
    "nkey": LISTEN + f"authorization {{ users: [ {{ nkey: {PUBLIC} }} ] }}",
    "creds": LISTEN + CHAIN.config(),
}


def seed_text(key: Key) -> str:
    """The seed of a user's key as `nsc` writes it."""
    kind = NkeyKind.USER
    raw = bytes([(18 << 3) | (kind >> 5), (kind & 31) << 3]) + bytes(key.signing)
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode().rstrip("=")


def write_creds(path: Path, key: Key, account: Key) -> Path:
    path.write_text(CREDS.replace("eyJ0.eyJq.sig", CHAIN.user(key, account)).replace(SEED, seed_text(key)))
    return path


@pytest.fixture(params=[pytest.param("nats-server", marks=pytest.mark.interop), "headwater"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which of the servers."""
    return str(request.param)


def given(demand: str, directory: Path) -> dict[str, object]:
    """Credentials that meet this demand."""
    (directory / "seed.nk").write_text(SEED)
    kinds: dict[str, dict[str, object]] = {
        "user": {"user": "u", "password": "p"},
        "token": {"token": "t0ken"},
        "nkey": {"nkey_seed": directory / "seed.nk"},
        "creds": {"creds": write_creds(directory / "user.creds", USER, CHAIN.a)},
    }
    return kinds[demand]


@pytest.mark.parametrize("demand", DEMANDS)
def test_a_server_takes_us_with_what_it_demands_also_when_we_come_back(
    shelf: ServerShelf, kind: str, demand: str, tmp_path: Path
) -> None:
    async def main() -> None:
        url = f"nats://127.0.0.1:{shelf.get(kind, DEMANDS[demand]).port}"
        async with await headwater.connect(
            url,
            error_callback=lambda _: None,
            reconnect_jitter=0.0,
            **given(demand, tmp_path),  # type: ignore[arg-type]
        ) as client:
            subscription = await client.subscribe("a")
            for number in (b"1", b"2"):
                await client.publish("a", number)
                assert (await subscription.next(5)).data == number
                await client.reconnect()

    finish(main(), 20)


@pytest.mark.parametrize("demand", DEMANDS)
def test_a_server_refuses_us_without_it_or_with_something_else(
    shelf: ServerShelf, kind: str, demand: str, tmp_path: Path
) -> None:
    async def main() -> None:
        url = f"nats://127.0.0.1:{shelf.get(kind, DEMANDS[demand]).port}"
        (tmp_path / "other.nk").write_text(seed_text(USER))
        wrong: list[dict[str, object]] = [
            {},
            {"user": "u", "password": "q"},
            {"token": "t1ken"},
            {"nkey_seed": tmp_path / "other.nk"},
            {"creds": write_creds(tmp_path / "stranger.creds", USER, Key(NkeyKind.ACCOUNT, 9))},
        ]
        for arguments in wrong:
            with pytest.raises(AuthorizationError) as caught:
                await headwater.connect(url, **arguments)  # type: ignore[arg-type]
            assert not caught.value.retriable

    finish(main(), 20)


def test_credentials_in_the_url_are_enough(shelf: ServerShelf, kind: str) -> None:
    async def main() -> None:
        for demand, login in (("user", "u:p"), ("token", "t0ken")):
            port = shelf.get(kind, DEMANDS[demand]).port
            async with await headwater.connect(f"nats://{login}@127.0.0.1:{port}") as client:
                await client.flush()

    finish(main())


def test_a_renewed_creds_file_counts_from_the_next_reconnect_on(shelf: ServerShelf, kind: str, tmp_path: Path) -> None:
    async def main() -> None:
        path = write_creds(tmp_path / "user.creds", USER, CHAIN.a)
        reasons: list[HeadwaterError | None] = []
        client = await headwater.connect(
            f"nats://127.0.0.1:{shelf.get(kind, DEMANDS['creds']).port}",
            creds=path,
            error_callback=lambda _: None,
            reconnect_wait=0.0,
            reconnect_jitter=0.0,
        )
        client.on_closed(reasons.append)
        write_creds(path, Key(NkeyKind.USER, 2), CHAIN.a)
        await client.reconnect()
        write_creds(path, USER, Key(NkeyKind.ACCOUNT, 9))
        with pytest.raises(HeadwaterError):
            await client.reconnect()
        await until(lambda: bool(reasons))
        assert isinstance(reasons[0], AuthorizationError)
        await client.close()

    finish(main(), 20)


def test_an_error_may_say_who_we_are_without_a_secret() -> None:
    def login(**fields: str) -> str:
        return identity_of(ConnectOptions(**fields))  # type: ignore[arg-type]

    claims = {"name": "al", "iss": "ASIGNER", "nats": {"issuer_account": "AOWNER"}}
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    assert login(jwt=f"e30.{body}.sig", sig="s") == "the user 'al' of the account AOWNER"
    assert login(jwt="nonsense", sig="s") == "the user of a JWT"
    assert login(nkey=PUBLIC, sig="s") == f"the user of the nkey {PUBLIC}"
    assert login(user="u", password="hush") == "the user 'u'"
    assert login(user="hush") == login(auth_token="hush") == "the user of a token"
    assert login() == "a user without a name"
