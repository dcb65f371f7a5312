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
        """Create a user; without `permissions` it may do nothing."""
        view: UserView = await self.execute(c.CreateUser(username, password, int(status), permissions))
        return view

    async def user(self, user: Name) -> UserView | None:
        """A user with its permissions; None when it does not exist."""
        view: UserView | None = await self.execute(c.GetUser(Identifier(user)))
        return view

    async def users(self) -> list[UserView]:
        """All users, without their permissions."""
        return await self.execute(c.GetUsers()) or []

    async def update_user(
        self,
        user: Name,
        username: str | None = None,
        status: UserStatus | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Change a user; arguments that are None change nothing."""
        number = None if status is None else int(status)
        await self.execute(c.UpdateUser(Identifier(user), username, number, options_block(options)))

    async def delete_user(self, user: Name) -> None:
        """Delete a user; its connections are closed."""
        await self.execute(c.DeleteUser(Identifier(user)))

    async def update_permissions(self, user: Name, permissions: Permissions | None) -> None:
        """Replace the user's permissions; None removes all."""
        await self.execute(c.UpdatePermissions(Identifier(user), permissions))

    async def change_password(self, user: Name, current: str, new: str) -> None:
        """Change a password; `current` is the present one."""
        await self.execute(c.ChangePassword(Identifier(user), current, new))

    async def create_token(self, name: str, expiry: timedelta | None = None) -> str:
        """Create a personal access token of this user, which is returned only here. `expiry` None: it never expires."""
        us = 0 if expiry is None else expiry // timedelta(microseconds=1)
        view: RawToken = await self.execute(c.CreateToken(name, us))
        return view.token

    async def tokens(self) -> list[TokenView]:
        """The names and expiry times of this user's tokens."""
        return await self.execute(c.GetTokens()) or []

    async def delete_token(self, name: str) -> None:
        """Revoke a token."""
        await self.execute(c.DeleteToken(name))
