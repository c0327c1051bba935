"""The second mark of an execution's processes, for those that have shed the first.

A mark in the environment is lost by `env -i`, by descent nothing is known once a parent has died, a session
is left by setsid. A resource limit is inherited through all of them and by other users' processes too, and
anybody may read it. The soft limit of real-time CPU time has no effect but on real-time processes, so a huge
number there is a mark that nobody sheds without meaning to.

Not here: what a brand is looked for on (`looking`). Sources: getrlimit(2) and proc(5), "/proc/pid/limits".
"""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

KANDEV = 0x4B << 56
"""The number's first byte; with it the limit is above 170,000 years."""
SHARE_BITS = 28
"""Of the home's hash, and of the execution's."""
LIMIT = b"Max realtime timeout"


def brand_of(home: str, execution_id: str) -> int:
    """The limit, in microseconds, that stands for an execution of a home."""
    return KANDEV | _share(home) << SHARE_BITS | _share(execution_id)


def is_of_home(brand: int, home: str) -> bool:
    """Whether it stands for an execution of this home."""
    return brand >> SHARE_BITS == brand_of(home, "") >> SHARE_BITS


def _share(text: str) -> int:
    return (
        int.from_bytes(sha256(text.encode(errors="surrogateescape")).digest()[:8], "big") >> 64 - SHARE_BITS
    )


def read_brand(pid: int) -> int | None:
    """The limit of a process; None when it has none, or is gone."""
    try:
        data = Path(f"/proc/{pid}/limits").read_bytes()
    except OSError:
        return None
    for line in data.splitlines():
        if line.startswith(LIMIT):
            soft = line[len(LIMIT) :].split()[0]
            return int(soft) if soft.isdigit() else None
    return None


@contextmanager
def branding(brand: int | None) -> Iterator[None]:
    """What is started meanwhile bears the brand from its first moment: we take it on, start it, and lay it
    down. (Given to a process afterwards, its first children would go without.) Must not be awaited in. None,
    or a hard limit below it: nothing is done."""
    soft, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
    if brand is None or not _set(brand, hard):
        yield
        return
    try:
        yield
    finally:
        _set(soft, hard)


def _set(soft: int, hard: int) -> bool:
    try:
        resource.setrlimit(resource.RLIMIT_RTTIME, (soft, hard))
    except (OSError, ValueError):
        return False
    return True
