"""The servers that every behaviour of the client is held to."""

from support.both_servers import real_server, serve

__all__ = ["real_server", "serve"]
