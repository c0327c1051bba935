"""What the wire formats share: reading message contents, pacing the words, writing server-sent events.

Not for deciding what to answer: that is `directives`.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from .directives import Action, Plan
from .tools import Json

WORD_PAUSE_S = 0.05
CUT_PIECES = 5
PIECE_CHARACTERS = 16_384
TEXT_TYPES = ("text", "input_text", "output_text")
INTERRUPTION_NOTES = ("[Request interrupted", "Tool loaded.")
# Blocks that agents put around or in front of what the user wrote.
WRAPPER = re.compile(
    r"^\s*<(kandev-context|kandev-message|system-reminder|environment_context|environment_details|system_info|user_instructions|"
    r"current_datetime|current_date|reminder|context|env|local-command|permissions|skills|apps|plugins|"
    r"recommended|session_context|INSTRUCTIONS|collaboration_mode|task_progress|turn_aborted|agent|"
    r"extension_context|vibe_[a-z_]+)\b[^>]*>(.*?</\1[^>]*>|.*$)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request to answer: the HTTP request, its JSON body, the plan and the request's number."""

    request: web.Request
    body: Json
    plan: Plan
    number: int

    @property
    def streamed(self) -> bool:
        """Whether the client wants server-sent events (OpenAI and Anthropic say so in the body)."""
        return bool(self.body.get("stream"))

    def drop(self) -> None:
        """Cut the connection, as a failing network would."""
        if self.request.transport is not None:
            self.request.transport.abort()


def texts(content: object) -> list[str]:
    """The text strings of a message's content, in any of the formats."""
    if isinstance(content, str):
        return [content]
    return [text for part in content or [] for text in _part(part)] if isinstance(content, list) else []


def _part(part: object) -> list[str]:
    if isinstance(part, str):
        return [part]
    if isinstance(part, dict) and part.get("text") is not None and part.get("type", "text") in TEXT_TYPES:
        return [str(part["text"])]
    return []


def user_text(parts: Iterable[str]) -> str:
    """What the user wrote last, without the blocks an agent puts around it; empty when there is nothing else.

    The last part counts because agents merge a cancelled prompt with the next one.
    """
    last = ""
    for part in parts:
        bare = part
        while found := WRAPPER.match(bare):
            bare = bare[found.end() :]
        if bare.strip() and not bare.startswith(INTERRUPTION_NOTES):
            last = bare
    return last


async def words(seconds: float) -> AsyncIterator[str]:
    """A word every 50 ms for so many seconds."""
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        number += 1
        yield f"w{number} "
        await asyncio.sleep(WORD_PAUSE_S)


async def pieces(plan: Plan) -> AsyncIterator[str]:
    """The pieces of text of an answer."""
    if plan.action is Action.SLOW:
        async for word in words(plan.seconds):
            yield word
        yield "slow end"
    elif plan.action is Action.THINK:
        yield "thought about it"
    elif plan.action is Action.CUT:
        for number in range(CUT_PIECES):
            yield f"c{number} "
            await asyncio.sleep(WORD_PAUSE_S)
    else:
        for start in range(0, len(plan.text), PIECE_CHARACTERS):
            yield plan.text[start : start + PIECE_CHARACTERS]


async def whole_text(plan: Plan) -> str:
    """All pieces of an answer as one string."""
    return "".join([piece async for piece in pieces(plan)])


class EventStream:
    """A response of server-sent events. `named` puts each event's type on a line of its own."""

    def __init__(self, request: web.Request, *, named: bool) -> None:
        self._request = request
        self._named = named
        self.response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        )

    async def start(self) -> None:
        """Send the head of the response."""
        await self.response.prepare(self._request)

    async def send(self, event: dict[str, Any]) -> None:
        """Send one event."""
        name = f"event: {event.get('type')}\n" if self._named else ""
        await self.raw(f"{name}data: {json.dumps(event)}\n\n")

    async def raw(self, text: str) -> None:
        """Send text as it is."""
        await self.response.write(text.encode())
