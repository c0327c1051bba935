"""In a database that went back in time nothing of a session runs or starts by itself, and nothing is lost."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from kandev.core import views
from kandev.core.decide import decide
from kandev.core.effects import Fate, LaunchOver, Line, Note, Review, TurnClosed
from kandev.core.inputs import Resume, Taken
from kandev.core.restoring import WHY, numbered, restored
from kandev.core.session import Launch, Outcome, Session
from tests.core.story import Story, message, permission, up
from tests.core.world import ACTS, World

HISTORIES = 150
STEPS = 60


def any_values() -> Iterator[Session]:
    """What sessions are like at any moment of random histories."""
    for seed in range(HISTORIES):
        rng, world = random.Random(seed), World()
        for _ in range(STEPS):
            world.act(rng.randrange(ACTS), rng.randrange(12))
            yield world.session


def fates(notes: tuple[Note, ...]) -> dict[str, str]:
    return {note.entry: note.fate for note in notes if isinstance(note, Fate)}


@pytest.mark.proves("STORE-restored-start")
def test_of_any_session_nothing_runs_and_nothing_is_lost() -> None:
    for before in any_values():
        after, notes = restored(before)
        assert (views.owed(after), views.timers(after), views.needs_actor(after)) == ((), frozenset(), False)
        assert views.wire_state(after) not in ("STARTING", "RUNNING")
        assert (after.outcome, after.executions) == (before.outcome, before.executions)
        assert after.generation == before.generation
        said = [e.id for e in views.in_turn(before)]
        assert [e.id for e in after.queue] == [e.id for e in before.queue]
        was_taken = before.turn is not None and before.turn.taken
        assert fates(notes) == ({} if was_taken else dict.fromkeys(said, "unknown"))


def test_done_twice_it_is_done_once() -> None:
    for before in any_values():
        after, _ = restored(before)
        again, notes = restored(after)
        assert again == after
        assert [type(note) for note in notes if not isinstance(note, Line)] == []


@pytest.mark.proves("STORE-restored-start")
def test_any_session_that_is_not_over_goes_on_with_the_next_message() -> None:
    for before in any_values():
        after = numbered(restored(before)[0], 40)
        if after.outcome in (Outcome.FAILED, Outcome.CANCELLED):
            after, _ = decide(after, Resume("again"))
        going, _ = decide(after, message("new"))
        assert going.launch is Launch.STARTING
        assert going.execution == "s.42"
        ready, _ = decide(going, up("s.42"))
        assert ready.turn is not None or ready.parked
        if not after.parked:
            continue
        assert views.in_turn(ready)[-1].id == "new", "what waited does not go before it"


def test_what_waits_waits_for_a_person_who_is_told_why() -> None:
    story = Story(message("a"), up(), message("b", "peer"))
    after, notes = restored(story.s)
    assert (after.parked, [e.id for e in after.queue]) == (WHY, ["b"])
    (closed,) = [note for note in notes if isinstance(note, TurnClosed)]
    assert (closed.cause, closed.error) == ("lost", WHY)
    assert any(isinstance(note, Line) and "the agent may remember it" in note.text for note in notes)
    assert any(isinstance(note, Review) for note in notes)


def test_a_turn_that_the_agent_had_is_not_in_doubt() -> None:
    story = Story(message("a"), up())
    story(Taken(story.ref))(permission(story.ref))
    after, notes = restored(story.s)
    assert fates(notes) == {}
    assert [note.cause for note in notes if isinstance(note, TurnClosed)] == ["lost"]
    assert (after.permissions, views.waiting_for(after)) == ((), None)


def test_a_launch_under_way_is_over_for_its_task() -> None:
    _, notes = restored(Story(message("a")).s)
    assert [note.error for note in notes if isinstance(note, LaunchOver)] == [WHY]


def test_a_session_that_never_ran_is_as_it_was() -> None:
    assert restored(Session("s")) == (Session("s"), ())
    assert numbered(Session("s"), 0) == Session("s")


def test_a_queue_that_a_failed_session_holds_is_held_by_that() -> None:
    failed = Session("s", outcome=Outcome.FAILED, executions=1, queue=Story(message("a")).s.queue)
    assert restored(failed)[0].parked is None


@pytest.mark.parametrize(
    ("executions", "seen", "next_one"), [(2, 0, 3), (2, 1, 3), (2, 2, 4), (2, 9, 11), (0, 1, 3)]
)
def test_an_execution_that_was_seen_is_never_named_again(executions: int, seen: int, next_one: int) -> None:
    s = numbered(Session("s", executions=executions), seen)
    assert s.executions + 1 == next_one
    assert s.executions > seen
