"""A person answers a question of an agent, or says that nobody will.

Not here: how the answer gets to the agent (`core.questions`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kandev.core.context_block import strip
from kandev.core.errors import Conflict, Invalid, NotFound
from kandev.core.inputs import Draft, Respond
from kandev.core.session import Entry
from kandev.core.transcript import Message
from kandev.ports.store import Tx
from kandev.usecases import finding
from kandev.usecases.answers import refuse
from kandev.usecases.ask_question import answer_entry, session_of
from kandev.usecases.context import Context


@dataclass(frozen=True)
class Answer:
    """To one question: labels of options that it offers, words of the person's own, or both."""

    question_id: str
    selected_options: Sequence[str] = ()
    custom_text: str | None = None


@dataclass(frozen=True)
class Responded:
    """`clarification.respond`'s result. `status`: `sent` (the agent has it), `queued`, `declined`."""

    status: str
    entry_id: str | None = None


async def answer_question(
    ctx: Context, *, pending_id: str, answers: Sequence[Answer], rejected: bool = False
) -> Responded:
    """Raises NotFound; Invalid (not its question, an option that it does not offer, nothing said); Conflict
    (answered already, a session that takes nothing)."""
    if rejected and answers:
        raise Invalid("Give answers, or rejected; not both.")
    session_id = session_of(pending_id)
    asked = await ctx.store.read(lambda tx: _question(tx, session_id, pending_id))
    entry = draft = None
    if not rejected:
        entry = Entry(answer_entry(pending_id), "answer")
        draft = Draft(_words(asked, answers), ctx.ids.new("message"))
    reply = await ctx.sessions.ask(session_id, lambda ask: Respond(ask, pending_id, entry, draft))
    if reply.status in ("answered", "not_found"):
        raise Conflict("The question is settled already: message.list says how.")
    if rejected:
        refuse(reply)
        return Responded("declined")
    status = refuse(reply).status
    return Responded("sent" if status == "sent" else "queued", entry.id if entry else None)


def _question(tx: Tx, session_id: str, pending_id: str) -> Message:
    found = None
    if tx.sessions.get(session_id) is not None:
        found = tx.messages.find(session_id, "clarification_request", pending_id)
    if found is None:
        raise NotFound("question not found", {"kind": "question", "id": pending_id})
    finding.task_on_board(tx, finding.session(tx, session_id).task_id)
    return found


def _words(asked: Message, answers: Sequence[Answer]) -> str:
    """What the agent reads."""
    if len(answers) != 1 or answers[0].question_id not in (
        asked.metadata.get("question_id"),
        asked.metadata["pending_id"],
    ):
        raise Invalid(f"answers must hold one answer, to the question {asked.metadata['question_id']!r}.")
    answer = answers[0]
    labels = [str(option["label"]) for option in asked.metadata.get("options", [])]
    for option in answer.selected_options:
        if option not in labels:
            offered = ", ".join(labels) or "none"
            raise Invalid(f"The question does not offer {option!r}: choose of {offered}, or use custom_text.")
    words = [*answer.selected_options, *([strip(answer.custom_text)] if answer.custom_text else [])]
    said = "\n".join(word for word in words if word.strip())
    if not said:
        raise Invalid("The answer is empty: choose an option, or say something in custom_text.")
    return said
