"""The scripted model server by hand: `python -m tests.real_agents.model LOG.jsonl [PORT]`.

Prints its base URL and runs until Ctrl+C. Tests start `ScriptedModel` themselves.
"""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

from .server import ScriptedModel


async def main(log_path: Path, port: int) -> None:
    """Serve until cancelled."""
    async with ScriptedModel(log_path, port) as model:
        sys.stdout.write(f"{model.base_url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    log, *port = sys.argv[1:] or sys.exit(
        "Give a file for the request log: python -m tests.real_agents.model LOG.jsonl [PORT]"
    )
    with suppress(KeyboardInterrupt):
        asyncio.run(main(Path(log), int(port[0]) if port else 0))
