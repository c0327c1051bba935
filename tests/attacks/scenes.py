"""What the attacks say often. Not here: Kandev itself (`tests.e2e`)."""

import sys
from pathlib import Path

from tests.e2e.kandev import Kandev
from tests.e2e.scenes import profile

AGENT = Path(__file__).with_name("hostile.py")


async def hostile(kandev: Kandev, mode: str = "") -> str:
    """The profile of a hostile agent."""
    return await profile(kandev, [sys.executable, str(AGENT), *([mode] if mode else [])])


def memory(pid: int) -> int:
    """Resident bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))
