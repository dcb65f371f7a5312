"""The only code that moves bytes: asyncio links, blocking sockets for Spark's workers. Start reading at `link.py`."""
