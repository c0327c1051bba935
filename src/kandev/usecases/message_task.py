"""A task's agent writes to the agent of another task: into its queue, or in the place of its current turn.

What happens to the message follows from the session alone (`core.sending`). This checks in the order of the
contract, notes the turn that an interrupt aims at before it asks, and says what is true: `sent`, `queued`,
`started`. A refused call has changed nothing. Not here: a person's message (`add_message`).
"""

from dataclasses import dataclass
from typing import Final

from kandev.core.board import Task
from kandev.core.context_block import strip
from kandev.core.effects import Reply
from kandev.core.errors import Conflict, Forbidden, Internal, Invalid, NotFound, StaleVersion
from kandev.core.inputs import Ask, Draft, Interrupt, Send
from kandev.core.records import EntryRecord
from kandev.core.session import Entry
from kandev.core.toolbox import SPAWN
from kandev.core.views import current_turn
from kandev.ports.store import Tx
from kandev.usecases import finding
from kandev.usecases.answers import refuse
from kandev.usecases.context import Context
from kandev.usecases.repeats import joined
from kandev.usecases.talked_to import talked_to
from kandev.usecases.wording import delivery_unknown

MODES: Final = ("queued", "interrupt")


@dataclass(frozen=True)
class Letter:
    """What is sent, by whom, to whom. `delivery_mode`: `queued`, `interrupt`; None or empty means queued."""

    task_id: str
    prompt: str
    sender_task_id: str
    sender_session_id: str | None = None
    delivery_mode: str | None = None
    session_id: str | None = None
    idempotency_key: str | None = None

    @property
    def interrupts(self) -> bool:
        """Whether it is to take the place of the current turn."""
        return self.delivery_mode == "interrupt"


@dataclass(frozen=True)
class Delivered:
    """`mcp.message_task`'s result."""

    task_id: str
    session_id: str
    status: str


@dataclass(frozen=True)
class _Way:
    """Where a letter goes: an entry that is known already, or a session; with the turn that is seen there."""

    session_id: str
    interrupt: Interrupt | None = None
    known: EntryRecord | None = None


async def message_task(ctx: Context, letter: Letter) -> Delivered:
    """Raises Invalid (delivery_mode, an empty prompt, the sender's own session), NotFound (sender, target,
    session), Forbidden (an interrupt by anybody but the direct parent; another workspace), Conflict (an
    archived task; another message under this key), QueueFull, Internal (FAILED or CANCELLED;
    `delivery_unknown`)."""
    text = _checked(letter)
    entry_id, message_id = ctx.ids.new("entry"), ctx.ids.new("message")
    way = await ctx.store.read(lambda tx: _look(tx, letter, entry_id))
    if way.known is None:
        draft = Draft(
            text,
            message_id,
            sender_task_id=letter.sender_task_id,
            sender_session_id=letter.sender_session_id,
            key=letter.idempotency_key,
        )
        try:
            return await _ask(ctx, letter, way, entry_id, draft)
        except StaleVersion:
            # The same message was stored between our look and the session's commit.
            way = await ctx.store.read(lambda tx: _look(tx, letter, entry_id))
            if way.known is None:
                raise
    return await _again(ctx, letter, way, way.known, text)


def _checked(letter: Letter) -> str:
    """The text; before anything is looked up."""
    if letter.delivery_mode and letter.delivery_mode not in MODES:
        shown = letter.delivery_mode[:64]
        raise Invalid(f"The field `delivery_mode` cannot be {shown!r}; it is `queued` or `interrupt`.")
    text = strip(letter.prompt)
    if not text.strip():
        raise Invalid("The field `prompt` is empty: say something.")
    return text


def _look(tx: Tx, letter: Letter, entry_id: str) -> _Way:
    sender, target = _parties(tx, letter)
    if letter.interrupts and target.parent_id != sender.id:
        raise Forbidden(
            "Only a task's direct parent may interrupt it, and your task is not the direct parent; "
            "nothing was sent. Send the message again with delivery_mode `queued`, or without it."
        )
    if target.workspace_id != sender.workspace_id:
        raise Forbidden("The task belongs to another workspace; an agent reaches its own workspace only.")
    key = letter.idempotency_key
    known = tx.entries.by_key(target.id, sender.id, key) if key else tx.entries.get(entry_id)
    if known is not None:
        return _Way(known.session_id, known=known)
    if target.archived_at is not None:
        raise Conflict(
            "The task is archived and takes no message: create another task for the work, or have a person "
            "put it back on the board."
        )
    if target.id == sender.id and letter.session_id in (None, letter.sender_session_id):
        raise Invalid("The field `session_id` must name another session of your own task, never your own.")
    session = talked_to(tx, target, letter.session_id)
    noted = Interrupt(current_turn(session.value)) if letter.interrupts else None
    return _Way(session.id, noted)


def _parties(tx: Tx, letter: Letter) -> tuple[Task, Task]:
    """Sender and target. No sentence and no detail repeats the sender's id."""
    sender = tx.tasks.get(letter.sender_task_id)
    if sender is None:
        raise NotFound("sender task not found")
    if letter.sender_session_id is not None:
        session = tx.sessions.get(letter.sender_session_id)
        if session is None or session.task_id != sender.id:
            raise NotFound("sender session not found")
    return sender, finding.task(tx, letter.task_id)


async def _ask(ctx: Context, letter: Letter, way: _Way, entry_id: str, draft: Draft) -> Delivered:
    limit, entry = ctx.deadlines.queue_max, Entry(entry_id, by="peer")

    def send(ask: str) -> Ask:
        return Send(ask, entry, draft, limit, interrupt=way.interrupt)

    reply = await ctx.sessions.ask(way.session_id, send)
    if reply.status == "unknown":
        raise delivery_unknown(entry_id)
    if reply.status == "rejected":
        raise _over(reply)
    status = refuse(reply).status
    return Delivered(letter.task_id, way.session_id, status if status in ("sent", "started") else "queued")


def _over(reply: Reply) -> Internal:
    state = (reply.details or {}).get("state", "over")
    return Internal(
        f"The session is {state} and takes no message: start a new one on the task with {SPAWN}.",
        {"state": state},
    )


async def _again(ctx: Context, letter: Letter, way: _Way, known: EntryRecord, text: str) -> Delivered:
    """What is true of it now; an ask still pending is joined."""
    if known.as_sent != text:
        raise Conflict("The idempotency_key was used for another message: take a new one.")
    delivered = await joined(ctx, known, lambda draft: _ask(ctx, letter, way, known.id, draft))
    return delivered or Delivered(letter.task_id, known.session_id, "sent")
