"""What follows the end of a turn in the same decision: a step's prompt, a parked queue, the session's end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kandev.core import following
from kandev.core.effects import Claimed, Enqueued, Reply, TurnClosed
from kandev.core.following import Follow
from kandev.core.inputs import AutoRun, Draft, Ended, Frame, Send, Taken
from kandev.core.session import Entry, Launch, Outcome, Session
from kandev.core.views import held, wire_state
from tests.core.story import Story, running

STEP = (Entry("step", "workflow"), Draft("go", "m"))


def waiting(*entries: str) -> Story:
    """A turn runs, and these wait."""
    story = running()
    for entry in entries:
        story(Send(f"ask {entry}", Entry(entry, "peer"), Draft("x", entry)))
    return story


def ended(story: Story, follow: Follow, stop_reason: str = "end_turn") -> tuple[Session, list[object]]:
    turn = story.ref
    s, notes = following.fold(story.s, [Ended(turn, stop_reason)], {turn: follow})
    return s, list(notes)


def test_a_steps_prompt_is_the_next_turn_and_what_waits_comes_behind_it() -> None:
    story = waiting("a", "b")
    s, notes = ended(story, Follow(STEP))
    assert s.turn is not None and [e.id for e in s.turn.entries] == ["step"]
    assert [e.id for e in s.queue] == ["a", "b"] and held(s) is None
    kinds = [type(note) for note in notes]
    assert kinds.index(Enqueued) < kinds.index(TurnClosed) < kinds.index(Claimed)
    assert s.turn.ref.generation == story.ref.generation + 1


@pytest.mark.proves("HOLE-24")
def test_an_entry_that_loses_the_next_turn_to_the_step_hears_that_it_waits() -> None:
    story = running()
    turn = story.ref
    asks = Send("late", Entry("late", "peer"), Draft("x", "late"))
    s, notes = following.fold(story.s, [asks, Ended(turn)], {turn: Follow(STEP)})
    assert [n.status for n in notes if isinstance(n, Reply) and n.ask == "late"] == ["queued"]
    assert [e.id for e in s.queue] == ["late"]


def test_a_queue_that_a_person_switched_off_keeps_the_steps_prompt_too() -> None:
    story = waiting("a")(AutoRun("off", False))
    s, _ = ended(story, Follow(STEP))
    assert s.turn is None and [e.id for e in s.queue] == ["a", "step"]
    assert wire_state(s) == "WAITING_FOR_INPUT"


def test_a_step_that_parks_the_queue_lets_its_own_prompt_run() -> None:
    s, _ = ended(waiting("a"), Follow(STEP, parks="the task left"))
    assert s.turn is not None and [e.id for e in s.turn.entries] == ["step"]
    assert ([e.id for e in s.queue], s.parked) == (["a"], "the task left")
    s, _ = ended(waiting("a"), Follow(parks="the task left"))
    assert (s.turn, [e.id for e in s.queue], s.parked) == (None, ["a"], "the task left")
    s, _ = ended(waiting(), Follow(parks="the task left"))
    assert s.parked is None, "nothing waits, nothing is parked"


def test_a_final_step_ends_the_session_and_begins_nothing_that_waits() -> None:
    s, notes = ended(waiting("a"), Follow(finishes="the task reached 'Done'"))
    assert (s.outcome, s.launch, s.turn) == (Outcome.COMPLETED, Launch.CLOSING, None)
    assert [e.id for e in s.queue] == ["a"] and s.parked is not None
    closed = [n for n in notes if isinstance(n, TurnClosed)]
    assert [(n.cause, n.stop_reason) for n in closed] == [("agent", "end_turn")]
    assert not [n for n in notes if isinstance(n, Reply) and n.ask == following.OURS]


def test_inputs_of_one_fold_are_decided_as_ever_around_what_follows() -> None:
    story = running()
    turn, at = story.ref, story.s.seen
    second = replace(turn, generation=turn.generation + 1)
    inputs = [
        Frame(turn.execution, at + 1, Ended(turn)),
        Frame(turn.execution, at + 2, Taken(second)),
        Frame(turn.execution, at + 3, Ended(second)),
    ]
    s, notes = following.fold(story.s, inputs, {turn: Follow(STEP)})
    assert [n.turn for n in notes if isinstance(n, TurnClosed)] == [turn, second]
    assert (s.turn, s.seen) == (None, at + 3)


def test_without_anything_that_follows_it_is_what_decide_says() -> None:
    story = waiting("a")
    turn = story.ref
    alone = following.fold(story.s, [Ended(turn)], {})
    story(Ended(turn))
    assert alone == (story.s, story.notes)
