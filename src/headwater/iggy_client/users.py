"""Users, their permissions, and personal access tokens: each method is one command."""

from collections.abc import Mapping
from datetime import timedelta

from headwater.iggy_client.management import Executor, Name
from headwater.iggy_client.values import UserStatus, options_block
from headwater.iggy_wire import commands as c
from headwater.iggy_wire.commands import Permissions
from headwater.iggy_wire.identifiers import Identifier
from headwater.iggy_wire.reply_codec import RawToken, TokenView, UserView


class Users(Executor):
    """Every method raises IggyError for what the server refuses, and TransportError."""

    async def create_user(
        self,
        username: str,
        password: str,
        status: UserStatus = UserStatus.ACTIVE,
        permissions: Permissions | None = None,
    ) -> UserView:
        """A user; without `permissions` nothing is allowed to it."""
        view: UserView = await self.execute(c.CreateUser(username, password, int(status), permissions))
        return view

    async def user(self, user: Name) -> UserView | None:
        """With its permissions; None when there is none."""
        view: UserView | None = await self.execute(c.GetUser(Identifier(user)))
        return view

    async def users(self) -> list[UserView]:
        """All, without their permissions."""
        return await self.execute(c.GetUsers()) or []

    async def update_user(
        self,
        user: Name,
        username: str | None = None,
        status: UserStatus | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """What is None stays as it is."""
        number = None if status is None else int(status)
        await self.execute(c.UpdateUser(Identifier(user), username, number, options_block(options)))

    async def delete_user(self, user: Name) -> None:
        """Its connections end."""
        await self.execute(c.DeleteUser(Identifier(user)))

    async def update_permissions(self, user: Name, permissions: Permissions | None) -> None:
        """These instead of those it had; None allows nothing."""
        await self.execute(c.UpdatePermissions(Identifier(user), permissions))

    async def change_password(self, user: Name, current: str, new: str) -> None:
        """`current` is the user's present one."""
        await self.execute(c.ChangePassword(Identifier(user), current, new))

    async def create_token(self, name: str, expiry: timedelta | None = None) -> str:
        """A personal access token of the caller's own, shown this once; None: it never ends."""
        us = 0 if expiry is None else expiry // timedelta(microseconds=1)
        view: RawToken = await self.execute(c.CreateToken(name, us))
        return view.token

    async def tokens(self) -> list[TokenView]:
        """The caller's own: names and expiry."""
        return await self.execute(c.GetTokens()) or []

    async def delete_token(self, name: str) -> None:
        """It opens nothing any more."""
        await self.execute(c.DeleteToken(name))
