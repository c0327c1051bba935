"""The floor of a WebSocket: a program that sends the lines of a file to whoever connects, as fast as it
can.

Run by its path with the file; says its port on stdout. The same library as the backend's, without
compression as there; nothing else in it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from websockets.asyncio.server import ServerConnection, serve


async def main(path: Path) -> None:
    """Until one client was served."""
    lines = path.read_text(encoding="utf-8").splitlines()
    served = asyncio.Event()

    async def send(connection: ServerConnection) -> None:
        for line in lines:
            await connection.send(line)
        served.set()

    async with serve(send, "127.0.0.1", 0, compression=None) as server:
        sys.stdout.write(f"{next(iter(server.sockets)).getsockname()[1]}\n")
        sys.stdout.flush()
        await served.wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
