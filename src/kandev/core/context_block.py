"""What Kandev adds to a prompt: the context block, and who sent a peer's message.

Both are blocks between tags of their own. They go to the agent only: the transcript keeps what was said
without them, and `strip` takes them out of whatever people or agents type, so that nobody can speak in
Kandev's name.
Not here: which tools there are (`toolbox`), and when a prompt introduces (`decide`).
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kandev.core import toolbox
from kandev.core.toolbox import Mode

TITLE_MAX: Final = 200
"""Characters of a task's title in a block; a longer one is cut."""
OPEN: Final = "<kandev-context>"
CLOSE: Final = "</kandev-context>"
_TAG: Final = re.compile(r"<(/?)kandev-(context|message)(?![\w-])", re.IGNORECASE)


@dataclass(frozen=True)
class Receiver:
    """The session that a prompt is for. `title` is its task's."""

    task_id: str
    session_id: str
    title: str
    mode: Mode = "task"


@dataclass(frozen=True)
class Sender:
    """The task whose agent sent a message, and its session where that is known."""

    task_id: str
    session_id: str | None = None
    title: str = ""


@dataclass(frozen=True)
class Said:
    """The text of one entry; `sender` is given for a peer's."""

    content: str
    sender: Sender | None = None


def prompt_text(said: Sequence[Said], receiver: Receiver, *, introduces: bool) -> str:
    """One prompt out of all entries of a turn, in order; with the context block before them when it
    introduces Kandev to the agent."""
    parts = [introduction(receiver)] if introduces else []
    for one in said:
        if one.sender is not None:
            parts.append(attribution(one.sender, receiver.mode))
        parts.append(strip(one.content))
    return "\n\n".join(parts)


def introduction(receiver: Receiver) -> str:
    """The context block: who and where the agent is, which tools it has, and how to choose between them."""
    tools = toolbox.NAMES[receiver.mode]
    lines = [
        OPEN,
        f"You work in Kandev on task {receiver.task_id} ({_quoted(receiver.title)}), in its session "
        f"{receiver.session_id}.",
    ]
    if tools:
        lines.append(f"Kandev's MCP server `kandev` gives you these tools: {', '.join(tools)}.")
    return "\n".join([*lines, *choice(tools), CLOSE])


def choice(tools: Sequence[str]) -> list[str]:
    """How to steer another task's agent, as far as these tools can: a line for each way. The description of
    the tool begins with the same lines."""
    if toolbox.MESSAGE not in tools:
        return []
    ways = [
        "To steer the agent of another task, choose:",
        f"- Information that can wait: {toolbox.MESSAGE} with delivery_mode left out (`queued`). It is "
        "delivered when the agent's current turn ends; the turn is not disturbed.",
        f"- Replacement work for a busy direct child of your task: {toolbox.MESSAGE} with "
        'delivery_mode="interrupt". The child\'s current turn is cancelled and your message is delivered at '
        "once. Only a task's direct parent may do this.",
    ]
    if toolbox.STOP in tools:
        ways.append(
            f"- Halting a direct child without any replacement work: {toolbox.STOP}. An interrupt always "
            "brings work of its own."
        )
    return ways


def attribution(sender: Sender, mode: Mode) -> str:
    """Who sent the message that follows, and the exact call that answers it."""
    session = "" if sender.session_id is None else f' session_id="{sender.session_id}"'
    of = "" if sender.session_id is None else f", session {sender.session_id}"
    lines = [
        f'<kandev-message task_id="{sender.task_id}"{session}>',
        f"The agent of task {sender.task_id} ({_quoted(sender.title)}){of} sent the message below.",
    ]
    if toolbox.MESSAGE in toolbox.NAMES[mode]:
        target = {"task_id": sender.task_id, "session_id": sender.session_id, "prompt": "…"}
        given = {name: value for name, value in target.items() if value is not None}
        lines.append(f"To reply, call {toolbox.MESSAGE} with {json.dumps(given, ensure_ascii=False)}.")
    return "\n".join([*lines, "</kandev-message>"])


def strip(text: str) -> str:
    """The text without Kandev's blocks and single tags of them, whatever case they are written in. A text
    without any comes back as it is. Takes time in proportion to its length, whatever it holds."""
    kept, end, cuts = list[str](), 0, 0
    for begin, after in _cuts(text):
        kept.append(text[end:begin])
        end, cuts = after, cuts + 1
    if not cuts:
        return text
    # A space stands where something was, so that what is left cannot join to a new tag.
    return " ".join([*kept, text[end:]]).strip()


def _cuts(text: str) -> Iterator[tuple[int, int]]:
    """Begin and end of each block, and of each tag that has no partner."""
    tags = list(_tags(text))
    closed_by: list[int | None] = [None] * len(tags)
    latest: dict[str, int] = {}
    for place in range(len(tags) - 1, -1, -1):
        closes, kind, _, end = tags[place]
        if closes:
            latest[kind] = end
        closed_by[place] = latest.get(kind)
    reached = 0
    for (closes, _, begin, end), partner in zip(tags, closed_by, strict=True):
        if begin >= reached:
            reached = end if closes or partner is None else partner
            yield begin, reached


def _tags(text: str) -> Iterator[tuple[bool, str, int, int]]:
    """Whether it closes, of which kind, where it begins and ends."""
    reached = 0
    for found in _TAG.finditer(text):
        if found.start() < reached:
            continue
        end = text.find(">", found.end())
        if end < 0:
            return
        reached = end + 1
        yield bool(found[1]), found[2].lower(), found.start(), reached


def _quoted(title: str) -> str:
    """In quotes, on one line, and unable to end a block."""
    line = " ".join(strip(title).split()).replace("<", "‹").replace(">", "›")
    return json.dumps(line if len(line) <= TITLE_MAX else f"{line[: TITLE_MAX - 1]}…", ensure_ascii=False)
