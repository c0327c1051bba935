"""What a step's events may say, and how they are kept."""

from __future__ import annotations

from typing import Any

import pytest

from kandev.core.board import Step
from kandev.core.errors import Invalid
from kandev.core.step_events import actions, checked, leads_to, named

A, B = Step("a", "k", "Plan", 0), Step("b", "k", "Build", 1)


def plan(events: dict[str, Any], *others: Step) -> tuple[Step, ...]:
    return (Step("a", "k", "Plan", 0, events), *(others or (B,)))


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ({"on_leave": []}, ["on_leave", "on_enter, on_turn_start, on_turn_complete, on_exit"]),
        ({"on_enter": {"type": "auto_start_agent"}}, ["on_enter is a list"]),
        ({"on_enter": ["auto_start_agent"]}, ["an action is an object with a type"]),
        ({"on_enter": [{}]}, ["an action is an object with a type"]),
        ({"on_enter": [{"type": "move_to_next"}]}, ["on_enter", "move_to_next", "auto_start_agent"]),
        ({"on_turn_start": [{"type": "auto_start_agent"}]}, ["on_turn_start", "move_to_next"]),
        ({"on_exit": [{"type": "move_to_next"}]}, ["on_exit", "park_queue"]),
        ({"on_enter": [{"type": "auto_start_agent", "promt": "x"}]}, ["auto_start_agent", "promt"]),
        ({"on_enter": [{"type": "auto_start_agent", "prompt": " "}]}, ["auto_start_agent", "prompt"]),
        ({"on_enter": [{"type": "auto_start_agent", "prompt": 3}]}, ["auto_start_agent", "prompt"]),
        ({"on_enter": [{"type": "auto_start_agent", "prompt": "x" * 100_001}]}, ["longer than 100000"]),
        ({"on_turn_start": [{"type": "move_to_next", "on_cancel": True}]}, ["move_to_next", "on_cancel"]),
        (
            {"on_turn_complete": [{"type": "move_to_next", "on_cancel": "yes"}]},
            ["on_cancel is true or false"],
        ),
        ({"on_turn_complete": [{"type": "move_to_step"}]}, ["move_to_step", "step_id or step_name"]),
        ({"on_turn_complete": [{"type": "move_to_step", "step_id": "z"}]}, ["move_to_step", "'z'"]),
        ({"on_turn_complete": [{"type": "move_to_step", "step_id": "a"}]}, ["itself"]),
        ({"on_turn_complete": [{"type": "move_to_step", "step_name": "Ship"}]}, ["'Ship'"]),
        ({"on_turn_complete": [{"type": "move_to_step", "step_name": ["Build"]}]}, ["['Build']"]),
        (
            {"on_turn_complete": [{"type": "move_to_step", "step_name": "Build", "step_id": "b"}]},
            ["either step_id or step_name"],
        ),
        (
            {"on_turn_complete": [{"type": "move_to_next"}, {"type": "move_to_previous"}]},
            ["on_turn_complete does one thing"],
        ),
    ],
)
def test_a_bad_event_is_refused_in_one_sentence_that_names_the_step(
    events: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(Invalid) as caught:
        checked(plan(events))
    sentence = caught.value.message
    assert sentence.startswith("Step 'Plan'") and sentence.endswith(".") and "\n" not in sentence
    assert [word for word in words if word not in sentence] == []


def test_a_name_that_two_steps_have_says_nothing() -> None:
    twins = (Step("b", "k", "Build", 1), Step("c", "k", "Build", 2))
    with pytest.raises(Invalid, match="2 steps of this workflow are named 'Build'"):
        checked(plan({"on_turn_start": [{"type": "move_to_step", "step_name": "Build"}]}, *twins))


def test_a_step_is_named_by_people_and_kept_by_its_id() -> None:
    said = {"on_turn_complete": [{"type": "move_to_step", "step_name": "Build", "on_cancel": True}]}
    (first, _) = checked(plan(said))
    assert first.events == {"on_turn_complete": [{"type": "move_to_step", "on_cancel": True, "step_id": "b"}]}
    assert leads_to(first, "b") and not leads_to(first, "a")
    (document, _) = named((first, B))
    assert document.events == {
        "on_turn_complete": [{"type": "move_to_step", "on_cancel": True, "step_name": "Build"}]
    }
    assert checked((document, B))[0] == first


def test_good_events_are_kept_as_they_are() -> None:
    said: dict[str, Any] = {
        "on_enter": [{"type": "auto_start_agent", "prompt": "Plan {title}"}],
        "on_turn_start": [],
        "on_turn_complete": [{"type": "move_to_next"}],
        "on_exit": [{"type": "park_queue"}],
    }
    assert checked(plan(said))[0].events == said
    assert actions(checked(plan(said))[0], "on_enter")[0][0].prompt == "Plan {title}"
    assert actions(A, "on_enter") == ((), ())
