"""An Iggy server in a process of its own, to be killed: prints its port, then serves until it is gone.

python iggy_server_program.py DIRECTORY [PORT]
"""

import asyncio
import sys
from pathlib import Path

from headwater.iggy.face import Iggy, IggyOptions


async def serve(directory: str, port: int) -> None:
    async with Iggy(IggyOptions(tcp=("127.0.0.1", port)), Path(directory)) as iggy:
        sys.stdout.write(f"{iggy.tcp_port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0))
