"""How a test asks for a server: the real nats-server or our broker, whichever the parameter says."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

Serve = Callable[[], AbstractAsyncContextManager[str]]  # `async with serve() as url`
