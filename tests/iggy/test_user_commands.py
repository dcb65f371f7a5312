"""Users, their logins and their tokens, command by command."""

from pathlib import Path

import pytest
from support.iggy_service import SECOND, Desk, G, S, T, at_desk

from headwater import TypedHeaders
from headwater.iggy import user_commands
from headwater.iggy.user_commands import NO_USER
from headwater.iggy_wire import commands as c
from headwater.iggy_wire import eras
from headwater.iggy_wire.commands import Permissions
from headwater.iggy_wire.eras import Era
from headwater.iggy_wire.identifiers import Identifier
from headwater.model.typed_headers import HeaderForm

ALICE, ROOT = Identifier("alice"), Identifier("iggy")


def modern(name: str, password: str, protocol: int = eras.PROTOCOL) -> c.Login:
    return c.Login(name, password, "0.11.0", "", protocol, "x")


def test_a_login_needs_the_name_the_password_an_active_user_and_todays_protocol(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        stranger = desk.client(user=None)
        assert await desk.refused(c.GetStreams(), stranger) == "unauthenticated"
        for login in (modern("iggy", "no"), modern("nobody", "iggy"), modern("", "")):
            assert await desk.refused(login, stranger) == "invalid_credentials"
        other = eras.NEWEST_PROTOCOL + 1
        assert await desk.refused(modern("iggy", "iggy", other), stranger) == "incompatible_protocol_version"
        assert stranger.user is None
        view = await desk.do(modern("iggy", "iggy"), stranger)
        assert (view.user_id, view.login, view.protocol) == (0, stranger.login, eras.PROTOCOL)
        again = await desk.do(modern("iggy", "iggy"), stranger)
        assert again.login > view.login, "each login has a number of its own"
        await desk.do(c.Logout(), stranger)
        assert await desk.refused(c.GetMe(), stranger) == "unauthenticated"
        await desk.do(c.CreateUser("alice", "secret", 2))
        assert await desk.refused(modern("alice", "secret"), stranger) == "user_inactive"
        await desk.do(c.UpdateUser(ALICE, status=1))
        assert (await desk.do(modern("alice", "secret"), stranger)).user_id == 1

    at_desk(tmp_path, work)


@pytest.mark.parametrize(("version", "era"), [("", Era.A2), ("0.6.0", Era.B), ("0.8.0", Era.C2), ("0.10.0", Era.C3)])
def test_an_older_client_is_of_the_era_that_it_names(tmp_path: Path, version: str, era: Era) -> None:
    async def work(desk: Desk) -> None:
        client = desk.client(Era.B, user=None)
        await desk.do(c.Login("iggy", "iggy", version), client)
        assert client.era is era
        assert await desk.refused(c.Login("iggy", "iggy", "1.0"), client) == "incompatible_protocol_version"

    at_desk(tmp_path, work)


def test_a_token_is_as_good_as_a_password_until_its_time(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        short = await desk.do(c.CreateToken("short", 10 * SECOND))
        endless = await desk.do(c.CreateToken("endless", (1 << 64) - 1))
        assert short.token != endless.token
        shown = [(token.name, token.expiry) for token in await desk.do(c.GetTokens())]
        assert shown == [("short", desk.now + 10 * SECOND), ("endless", 0)]
        stored = desk.service.catalog.encode()
        assert short.token.encode() not in stored, "only a digest is kept"

        def with_token(token: str) -> c.LoginWithToken:
            return c.LoginWithToken(token, "0.11.0", "", eras.PROTOCOL, "x")

        client = desk.client(user=None)
        for made in (short, endless):
            assert (await desk.do(with_token(made.token), client)).user_id == 0
        desk.now += 10 * SECOND
        assert await desk.refused(with_token(short.token), client) == "personal_access_token_expired"
        assert await desk.refused(with_token("x"), client) == "invalid_personal_access_token"
        await desk.do(c.DeleteToken("endless"))
        assert await desk.refused(with_token(endless.token), client) == "invalid_personal_access_token"
        assert await desk.refused(c.DeleteToken("endless")) == "resource_not_found"

    at_desk(tmp_path, work)


def test_a_user_has_so_many_tokens_each_with_a_name_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(desk: Desk) -> None:
        monkeypatch.setattr(user_commands, "MAX_TOKENS", 2)
        await desk.do(c.CreateToken("one"))
        assert await desk.refused(c.CreateToken("one")) == "personal_access_token_already_exists"
        assert await desk.refused(c.CreateToken("ab")) == "invalid_personal_access_token_name"
        await desk.do(c.CreateToken("two"))
        assert await desk.refused(c.CreateToken("three")) == "personal_access_tokens_limit_reached"
        await desk.do(c.CreateUser("alice", "secret"))
        await desk.do(c.CreateToken("one"), desk.client(user="alice"))

    at_desk(tmp_path, work)


def test_users_are_made_changed_and_shown(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        allowed = Permissions(read_streams=True)
        made = await desk.do(c.CreateUser("alice", "secret", 1, allowed))
        assert (made.id, made.username, made.status, made.permissions) == (1, "alice", 1, allowed)
        assert await desk.refused(c.CreateUser("alice", "secret")) == "user_already_exists"
        for wrong in ("al", "é" * 26):
            assert await desk.refused(c.CreateUser(wrong, "secret")) == "invalid_username", "counted in bytes"
        colour = TypedHeaders({"colour": "red"}).encode(HeaderForm.TYPED)
        assert await desk.refused(c.CreateUser("bob", "secret", options=colour)) == "unsupported_option_key"
        assert await desk.refused(c.UpdateUser(ALICE, status=1, options=colour)) == "unsupported_option_key"
        assert await desk.refused(c.CreateUser("bob", "no")) == "invalid_password"
        assert await desk.refused(c.CreateUser("bob", "secret", 3)) == "invalid_user_status"
        await desk.do(c.CreateUser("bob", "secret"))
        assert await desk.refused(c.UpdateUser(ALICE, username="bob")) == "user_already_exists"
        assert await desk.refused(c.UpdateUser(ALICE, status=0)) == "invalid_user_status"
        await desk.do(c.UpdateUser(ALICE, username="alicia", status=2))
        shown = await desk.do(c.GetUser(Identifier("alicia")))
        assert (shown.id, shown.status) == (1, 2) and shown == await desk.do(c.GetUser(Identifier(1)))
        assert await desk.do(c.GetUser(ALICE)) is None
        assert [user.username for user in await desk.do(c.GetUsers())] == ["iggy", "alicia", "bob"]
        assert await desk.refused(c.UpdateUser(ALICE, status=1)) == "resource_not_found"
        await desk.do(c.DeleteUser(Identifier("bob")))
        assert (await desk.do(c.CreateUser("bob", "secret"))).id == 3, "an id is not given twice"

    at_desk(tmp_path, work)


def test_the_root_user_stays_and_may_do_everything(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        assert await desk.refused(c.DeleteUser(ROOT)) == "cannot_delete_user"
        assert await desk.refused(c.UpdatePermissions(ROOT, None)) == "cannot_change_permissions"
        await desk.do(c.CreateUser("alice", "secret"))
        alice = desk.client(user="alice")
        assert await desk.refused(c.GetUsers(), alice) == "unauthorized"
        await desk.do(c.UpdatePermissions(ALICE, Permissions(read_users=True)))
        assert len(await desk.do(c.GetUsers(), alice)) == 2

    at_desk(tmp_path, work)


def test_whoever_is_deleted_is_logged_out_everywhere(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.do(c.CreateUser("alice", "secret", 1, Permissions(read_streams=True)))
        both = [desk.client(user="alice"), desk.client(Era.C3, user="alice")]
        for client in both:
            await desk.do(c.GetStreams(), client)
        await desk.do(c.DeleteUser(ALICE))
        for client in both:
            assert await desk.refused(c.GetStreams(), client) == "unauthenticated"
        await desk.do(c.GetStreams())

    at_desk(tmp_path, work)


def test_a_password_is_changed_by_who_knows_it(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.do(c.CreateUser("alice", "secret"))
        alice = desk.client(user="alice")
        assert await desk.refused(c.ChangePassword(ALICE, "wrong", "another"), alice) == "invalid_credentials"
        assert await desk.refused(c.ChangePassword(ALICE, "secret", "no"), alice) == "invalid_password"
        assert await desk.refused(c.ChangePassword(ROOT, "iggy", "another"), alice) == "unauthorized"
        await desk.do(c.ChangePassword(ALICE, "secret", "another"), alice)
        assert await desk.refused(modern("alice", "secret"), alice) == "invalid_credentials"
        await desk.do(modern("alice", "another"), alice)

    at_desk(tmp_path, work)


def test_clients_are_shown_with_what_they_read(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        await desk.make()
        await desk.do(c.JoinGroup(S, T, G))
        stranger = desk.client(Era.C3, user=None)
        me = await desk.do(c.GetMe())
        assert (me.id, me.user, me.address, me.groups) == (desk.root.id, 0, "192.0.2.1:5", 1)
        assert [(one.stream, one.topic, one.group) for one in me.details] == [(0, 0, 0)]
        shown = {view.id: (view.user, view.groups, view.details) for view in await desk.do(c.GetClients())}
        assert shown == {desk.root.id: (0, 1, []), stranger.id: (NO_USER, 0, [])}
        assert (await desk.do(c.GetClient(stranger.id))).user == NO_USER
        assert await desk.do(c.GetClient(77)) is None
        assert await desk.refused(c.GetClient(77), desk.client(Era.S, user=None)) == "client_not_found"
        desk.service.disconnect(stranger)
        assert len(await desk.do(c.GetClients())) == 2

    at_desk(tmp_path, work)
