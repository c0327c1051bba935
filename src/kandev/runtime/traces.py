"""Spans of decisions and effects, for whoever collects traces; without a collector they are nothing.

Not here: sending them (`kandev.tracing`).
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from opentelemetry import trace
from opentelemetry.context import Context

from kandev.core.effects import (
    AnswerPermission,
    CancelTurn,
    Dropped,
    Follow,
    Note,
    Owed,
    Prompt,
    Told,
    execution_of,
)
from kandev.core.inputs import Frame, Input
from kandev.core.records import SessionRecord

tracer = trace.get_tracer("kandev.runtime")


def deciding(
    record: SessionRecord, taken: Sequence[Input], notes: Sequence[Note], cause: Context | None
) -> AbstractContextManager[object]:
    """Around a commit and what follows from it, so that the effects belong to it; `cause` is the trace of who
    asked. Mere output has none: it comes by the thousand, and tells nothing."""
    if cause is None and all(isinstance(note, Told | Dropped) for note in notes):
        return nullcontext()
    about: dict[str, str | int] = {
        "kandev.session_id": record.id,
        "kandev.task_id": record.task_id,
        "kandev.execution_id": record.value.execution,
        "kandev.prompt_generation": record.value.generation,
        "kandev.inputs": ", ".join(sorted({_word(given) for given in taken})),
    }
    return tracer.start_as_current_span("decide", context=cause or Context(), attributes=about)


def performing(effect: Owed, attempt: int) -> AbstractContextManager[object]:
    """Around one attempt at an effect. Following a journal lasts as long as its process, and has none."""
    if isinstance(effect, Follow):
        return nullcontext()
    about: dict[str, str | int] = {"kandev.execution_id": execution_of(effect), "kandev.attempt": attempt + 1}
    if isinstance(effect, Prompt | CancelTurn | AnswerPermission):
        about["kandev.prompt_generation"] = effect.turn.generation
    return tracer.start_as_current_span(type(effect).__name__, attributes=about)


def _word(given: Input) -> str:
    return type(given.report if isinstance(given, Frame) else given).__name__
