"""Questions of the agent to a person, asked by a tool call.

An answer is an entry. As long as the tool call waits, the answer is in hand for it; taken, it is delivered.
An answer that no tool call takes is the next prompt, and ends the turn that asked: the agent may hang in its
call. A question that its turn has left open keeps the session waiting: nothing but a jump runs meanwhile.
"""

from dataclasses import replace
from typing import Final

from kandev.core.effects import (
    Enqueued,
    Fate,
    Note,
    QuestionClosed,
    QuestionOpened,
    Reply,
    Review,
)
from kandev.core.inputs import AskPerson, QuestionDone, QuestionLeft, QuestionReport, Respond
from kandev.core.sending import LEFT_BY_RESUME_ONLY, ends_silently
from kandev.core.session import Entry, Launch, Outcome, Question, Session
from kandev.core.steps import Step, in_places, replies
from kandev.core.views import wire_state

AT_ONCE: Final = 20
"""So many questions of one session may be open: an agent that asks and leaves would ask for ever."""


def ask(s: Session, given: AskPerson) -> Step:
    """In a turn that goes on. The same call again joins its question."""
    if any(q.id == given.question for q in s.questions):
        return s, (Reply(given.ask, "asked"),)
    works = s.turn is not None and s.turn.ending is None and s.launch is Launch.READY
    if s.turn is None or not works or s.outcome is not Outcome.OPEN:
        sentence = "No turn is under way in which a question could be asked."
        return s, (Reply(given.ask, "conflict", sentence),)
    if len(s.questions) >= AT_ONCE:
        sentence = f"{len(s.questions)} questions of this session are open: wait for their answers first."
        return s, (Reply(given.ask, "conflict", sentence),)
    question = Question(given.question, s.turn.ref)
    opened = QuestionOpened(s.turn.ref, given.question, given.payload)
    return replace(s, questions=(*s.questions, question)), (opened, Reply(given.ask, "asked"))


def respond(s: Session, given: Respond) -> Step:
    """By a person, once."""
    found = next((q for q in s.questions if q.id == given.question), None)
    if found is None or found.answer is not None:
        return s, (Reply(given.ask, "not_found" if found is None else "answered"),)
    if s.outcome in LEFT_BY_RESUME_ONLY or s.launch is Launch.LOST:
        sentence = f"The session is {wire_state(s)}: resume it before answering."
        return s, (Reply(given.ask, "rejected", sentence, {"state": wire_state(s)}),)
    if given.entry is None:
        s = replace(s, questions=tuple(q for q in s.questions if q is not found))
        closed = QuestionClosed(given.question, "declined", given.by)
        return s, (closed, Review(), Reply(given.ask, "ok"))
    entry = replace(given.entry, place=s.places + 1, asks=(given.ask,))
    s = replace(s, places=entry.place)
    told = (
        Enqueued(entry, given.draft),
        QuestionClosed(given.question, "answered", given.by, entry.id),
    )
    if found.waits:
        answered = replace(found, answer=entry)
        return replace(s, questions=tuple(answered if q is found else q for q in s.questions)), told
    s, notes = _next_prompt(s, found, entry)
    return s, (*told, *notes)


def _next_prompt(s: Session, question: Question, entry: Entry) -> Step:
    """Ahead of what waits; the turn that asked is ended for it, another one is not."""
    s = replace(
        s,
        questions=tuple(q for q in s.questions if q.id != question.id),
        queue=in_places((*s.queue, entry)),
        jumps=(*s.jumps, entry.id),
        outcome=Outcome.OPEN if s.outcome is Outcome.COMPLETED else s.outcome,
    )
    if s.turn is not None and s.turn.ref == question.turn:
        if s.turn.ending == "user":  # a person's cancel outranks it: it waits, parked with the rest
            return replace(s, jumps=tuple(j for j in s.jumps if j != entry.id)), ()
        return ends_silently(s)
    return s, ()


def stale(s: Session, given: QuestionReport) -> bool:
    """About a question that is settled, or an answer that is not in hand."""
    found = next((q for q in s.questions if q.id == given.question), None)
    return found is None or (isinstance(given, QuestionDone) and found.answer is None)


def left(s: Session, given: QuestionLeft) -> Step:
    """Still open: a late answer is the next prompt."""
    questions = tuple(replace(q, waits=False) if q.id == given.question else q for q in s.questions)
    return replace(s, questions=questions), ()


def done(s: Session, given: QuestionDone) -> Step:
    """The answer was in hand. Not taken, it is a message like any other."""
    question = next(q for q in s.questions if q.id == given.question)
    entry = question.answer
    assert entry is not None
    without = replace(s, questions=tuple(q for q in s.questions if q is not question))
    if given.served:
        told: tuple[Note, ...] = replies(entry.asks, "sent")
        return without, (*told, Fate(entry.id, "delivered", question.turn))
    if given.served is None:
        return without, (*replies(entry.asks, "unknown"), Fate(entry.id, "unknown", question.turn))
    if s.outcome in LEFT_BY_RESUME_ONLY or s.launch is Launch.LOST:
        queue = in_places((*s.queue, replace(entry, asks=())))
        return replace(without, queue=queue), replies(entry.asks, "queued")
    return _next_prompt(s, question, entry)


def without_process(s: Session) -> Step:
    """No tool call waits any more; what was in hand may have been taken."""
    unknown = [q for q in s.questions if q.answer is not None]
    fates = (Fate(q.answer.id, "unknown", q.turn) for q in unknown if q.answer)
    told = replies((a for q in unknown if q.answer for a in q.answer.asks), "unknown")
    questions = tuple(replace(q, waits=False) for q in s.questions if q.answer is None)
    return replace(s, questions=questions), (*told, *fates)


def expired(s: Session, question: str) -> Step:
    """Nobody answered in all that time."""
    s = replace(s, questions=tuple(q for q in s.questions if q.id != question))
    return s, (QuestionClosed(question, "expired"), Review())
