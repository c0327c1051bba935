"""What the log says when no descriptor is left for another connection.

asyncio itself lets the listening socket rest for a second then, and tries again; but it reports each of the
many connections that it could not take, with a traceback. Here it is one sentence a minute.
"""

import asyncio
import errno
import logging
import resource
from typing import Any

TOLD_AGAIN_S = 60.0
NONE_LEFT = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

log = logging.getLogger(__name__)


def tell_exhaustion(loop: asyncio.AbstractEventLoop) -> None:
    """From now on; everything else is handled as it was."""
    told_at = float("-inf")

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal told_at
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in NONE_LEFT and "socket" in context):
            loop.default_exception_handler(context)
        elif loop.time() - told_at >= TOLD_AGAIN_S:
            told_at = loop.time()
            limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            log.error(
                "connections wait: the system gives no descriptor for them (%s, limit %d); "
                "end agents, or raise the limit (ulimit -n, LimitNOFILE)",
                error.strerror,
                limit,
            )

    loop.set_exception_handler(handle)
