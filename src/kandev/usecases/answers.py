"""What a session answered, as a result or as a refusal. One table of the core's status words."""

from kandev.core.effects import Reply
from kandev.core.errors import Conflict, Internal, KandevError, QueueFull

_REFUSALS: dict[str, type[KandevError]] = {
    "rejected": Conflict,
    "queue_full": QueueFull,
    "conflict": Conflict,
    # Accepted, and never handed over: whoever still waited must not believe that it is queued.
    "removed": Conflict,
    "replaced": Conflict,
}


def refuse(reply: Reply) -> Reply:
    """The reply itself, unless its status is a refusal: then the error that it stands for."""
    kind = _REFUSALS.get(reply.status)
    if kind is not None:
        raise kind(reply.error or "not found", reply.details)
    if reply.status == "unknown":
        raise Internal(reply.error or "delivery unknown", reply.details)
    return reply
