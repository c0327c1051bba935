"""Names for what a tool call makes: a call that is handled twice finds what it made the first time."""

import base64
import hashlib
from dataclasses import dataclass, replace
from typing import Final

from kandev.usecases.context import Context

DIGEST: Final = 20
"""Bytes: two calls never meet."""


@dataclass(frozen=True)
class CallIds:
    """Implements `ports.clock.Ids`. One call makes at most one thing of each noun."""

    call_id: str

    def new(self, noun: str) -> str:
        """The same for the same call and noun."""
        digest = hashlib.blake2b(f"{noun}\0{self.call_id}".encode(), digest_size=DIGEST).digest()
        return f"{noun}_{base64.b32encode(digest).decode().lower()}"


def for_call(ctx: Context, call_id: str) -> Context:
    """The same house, where new names derive from this call; an empty `call_id` leaves it as it is."""
    return replace(ctx, ids=CallIds(call_id)) if call_id else ctx
