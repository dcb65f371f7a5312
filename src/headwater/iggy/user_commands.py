"""Logging in and out; users, their permissions and their personal access tokens: a function for each command.

A login fixes the era of a client's connection. Its failure is an event for operators, with the name and never with
what was shown; an unknown name takes as long as a wrong password. Passwords are hashed and compared in another
thread. Users and tokens are on disk before they are answered. Refused: to delete the root user, and to go on with a
session of an earlier connection.
"""

from functools import partial
from typing import Any, Final

from headwater.iggy import credentials
from headwater.iggy.catalog import NEVER, TokenEntry, UserEntry
from headwater.iggy.clients import HTTP, Client
from headwater.iggy.credentials import ROOT_ID
from headwater.iggy.server_commands import SERVER_VERSION
from headwater.iggy.service import Service
from headwater.iggy_wire import commands as c
from headwater.iggy_wire import reply_codec as views
from headwater.iggy_wire.commands import Command
from headwater.iggy_wire.eras import PROTOCOL, Era, of_login, of_protocol
from headwater.iggy_wire.error_numbers import refusal
from headwater.iggy_wire.option_catalog import check_creation
from headwater.iggy_wire.options import USER, check_update, names_in, read_options

ACTIVE, INACTIVE = 1, 2
MAX_TOKENS: Final = 100
NO_USER: Final = 0xFFFFFFFF


# ── logging in ──


async def login(service: Service, client: Client, command: c.Login) -> views.LoginView:
    """Log in by name and password, which is checked in another thread."""
    _check_version(client, command)
    user = next((user for user in service.catalog.users if user.name == command.username), None)
    stored = user.password if user is not None else bytes(48)  # an unknown name takes as long as a known one
    fits = await service.in_thread(partial(credentials.fits, command.password, stored))
    if user is None or not fits:
        _note_refusal(service, client, command.username, "bad credentials")
        raise refusal("invalid_credentials", f"user {command.username!r} and this password do not go together")
    return _enter(service, client, user, command)


def login_with_token(service: Service, client: Client, command: c.LoginWithToken) -> views.LoginView:
    _check_version(client, command)
    digest = credentials.token_digest(command.token)
    for user in service.catalog.users:
        for token in user.tokens:
            if token.digest == digest:
                if token.expiry and token.expiry <= service.clock_us():
                    _note_refusal(service, client, user.name, "expired token")
                    raise refusal("personal_access_token_expired", f"token {token.name!r} is past its time")
                return _enter(service, client, user, command)
    _note_refusal(service, client, "", "unknown token")
    raise refusal("invalid_personal_access_token", "no user has this token")


def _note_refusal(service: Service, client: Client, name: str, reason: str) -> None:
    service.note("login_failed", face="iggy", user=name, client=client.id, address=client.address, reason=reason)


def _check_version(client: Client, command: c.Login | c.LoginWithToken) -> None:
    if client.era >= Era.V:
        client.era = of_protocol(command.protocol)


def _enter(service: Service, client: Client, user: UserEntry, command: c.Login | c.LoginWithToken) -> views.LoginView:
    if user.status != ACTIVE:
        _note_refusal(service, client, user.name, "inactive user")
        raise refusal("user_inactive", f"user {user.name!r} is not active")
    if client.era < Era.V and client.transport != HTTP:
        client.era = of_login(command.version)
    service.operations += 1
    client.user, client.login = user, service.operations - service.started_us  # clients of W store it in 43 bits
    protocol = command.protocol if client.era >= Era.W else PROTOCOL
    return views.LoginView(user.id, client.login, protocol, SERVER_VERSION)


def bind_session(service: Service, client: Client, command: c.BindSession) -> None:
    """Refuse: a session ends with its connection here, so the client logs in again."""
    raise refusal("unauthenticated", "sessions end with their connection: log in again")


def logout(service: Service, client: Client, command: c.Logout) -> None:
    client.user, client.login = None, 0


# ── clients ──


def client_view(service: Service, client: Client, details: bool = False) -> views.ClientView:
    found = []
    for uid, group_id in sorted(client.memberships):
        for stream in service.catalog.streams:
            found += [views.Membership(stream.id, t.id, group_id) for t in stream.topics if t.uid == uid]
    user = client.user.id if client.user is not None else NO_USER
    return views.ClientView(client.id, user, client.transport, client.address, len(found), found if details else [])


def me(service: Service, client: Client, command: c.GetMe) -> views.ClientView:
    return client_view(service, client, details=True)


def get_client(service: Service, client: Client, command: c.GetClient) -> views.ClientView | None:
    found = service.clients.get(command.client_id)
    if found is None and client.era is Era.S:
        raise refusal("client_not_found", f"there is no client {command.client_id}", command.client_id)
    return client_view(service, found, details=True) if found is not None else None


def get_clients(service: Service, client: Client, command: c.GetClients) -> list[views.ClientView]:
    return [client_view(service, other) for other in service.clients]


# ── users ──


def user_view(user: UserEntry) -> views.UserView:
    return views.UserView(user.id, user.created, user.status, user.name, user.options, user.permissions)


def get_user(service: Service, client: Client, command: c.GetUser) -> views.UserView | None:
    found = [user for user in service.catalog.users if command.user.value in (user.id, user.name)]
    return user_view(found[0]) if found else None


def get_users(service: Service, client: Client, command: c.GetUsers) -> list[views.UserView]:
    return [user_view(user) for user in service.catalog.users]


async def create_user(service: Service, client: Client, command: c.CreateUser) -> views.UserView:
    credentials.check_username(command.username)
    credentials.check_password(command.password)
    status = _checked_status(command.status)
    check_creation(USER, names_in(command.options), client.era)
    read_options(command.options, USER)
    stored = await service.in_thread(partial(credentials.hash_password, command.password, service.entropy))
    async with service.change() as catalog:
        if any(user.name == command.username for user in catalog.users):
            raise refusal("user_already_exists", f"there is a user {command.username!r}", command.username)
        permissions, number = command.permissions, catalog.next_user
        user = UserEntry(number, command.username, stored, service.clock_us(), status, permissions, [], command.options)
        catalog.next_user += 1
        catalog.users.append(user)
    return user_view(user)


def _checked_status(status: int) -> int:
    if status not in (ACTIVE, INACTIVE):
        raise refusal("invalid_user_status", f"a status is {ACTIVE} or {INACTIVE}", status)
    return status


async def delete_user(service: Service, client: Client, command: c.DeleteUser) -> None:
    async with service.change() as catalog:
        user = catalog.user(command.user)
        if user.id == ROOT_ID:
            raise refusal("cannot_delete_user", "the root user stays", user.name)
        catalog.users.remove(user)
    for other in service.clients:
        if other.user is not None and other.user.id == user.id:
            other.user, other.login = None, 0


async def update_user(service: Service, client: Client, command: c.UpdateUser) -> None:
    check_update(command.options, USER)
    async with service.change() as catalog:
        user = catalog.user(command.user)
        if command.username is not None:
            credentials.check_username(command.username)
            if any(other.name == command.username and other is not user for other in catalog.users):
                raise refusal("user_already_exists", f"there is a user {command.username!r}", command.username)
            user.name = command.username
        if command.status is not None:
            user.status = _checked_status(command.status)


async def update_permissions(service: Service, client: Client, command: c.UpdatePermissions) -> None:
    async with service.change() as catalog:
        user = catalog.user(command.user)
        if user.id == ROOT_ID:
            raise refusal("cannot_change_permissions", "the root user may do everything", user.name)
        user.permissions = command.permissions


async def change_password(service: Service, client: Client, command: c.ChangePassword) -> None:
    credentials.check_password(command.new)
    user = service.catalog.user(command.user)
    if not await service.in_thread(partial(credentials.fits, command.current, user.password)):
        raise refusal("invalid_credentials", "the current password is another")
    stored = await service.in_thread(partial(credentials.hash_password, command.new, service.entropy))
    async with service.change() as catalog:
        catalog.user(command.user).password = stored


# ── tokens ──


def get_tokens(service: Service, client: Client, command: c.GetTokens) -> list[views.TokenView]:
    user = _self(client)
    return [views.TokenView(token.name, token.expiry) for token in user.tokens]


def _self(client: Client) -> UserEntry:
    if client.user is None:
        raise refusal("unauthenticated", "log in first")
    return client.user


async def create_token(service: Service, client: Client, command: c.CreateToken) -> views.RawToken:
    credentials.check_token_name(command.name)
    token = credentials.new_token(service.entropy)
    expiry = 0 if command.expiry in (0, NEVER) else service.clock_us() + command.expiry
    async with service.change():
        user = _self(client)
        if len(user.tokens) >= MAX_TOKENS:
            raise refusal("personal_access_tokens_limit_reached", f"a user has at most {MAX_TOKENS} tokens")
        if any(known.name == command.name for known in user.tokens):
            raise refusal("personal_access_token_already_exists", f"there is a token {command.name!r}", command.name)
        user.tokens.append(TokenEntry(command.name, credentials.token_digest(token), expiry))
    return views.RawToken(token)


async def delete_token(service: Service, client: Client, command: c.DeleteToken) -> None:
    async with service.change():
        user = _self(client)
        kept = [token for token in user.tokens if token.name != command.name]
        if len(kept) == len(user.tokens):
            raise refusal("resource_not_found", f"there is no token {command.name!r}", command.name)
        user.tokens = kept


HANDLERS: Final[dict[type[Command], Any]] = {
    c.Login: login,
    c.LoginWithToken: login_with_token,
    c.Logout: logout,
    c.BindSession: bind_session,
    c.GetMe: me,
    c.GetClient: get_client,
    c.GetClients: get_clients,
    c.GetUser: get_user,
    c.GetUsers: get_users,
    c.CreateUser: create_user,
    c.DeleteUser: delete_user,
    c.UpdateUser: update_user,
    c.UpdatePermissions: update_permissions,
    c.ChangePassword: change_password,
    c.GetTokens: get_tokens,
    c.CreateToken: create_token,
    c.DeleteToken: delete_token,
}
