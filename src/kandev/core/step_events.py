"""A step's events: which there are, which actions they may have, and whether a step's are well said.

`events` of a step maps an event to its list of actions, each an object with a `type`. Not here: what an
action does (`workflow`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kandev.core.board import Step
from kandev.core.errors import Invalid

MOVES: Final = ("move_to_next", "move_to_previous", "move_to_step")
ACTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "on_enter": ("auto_start_agent",),
    "on_turn_start": MOVES,
    "on_turn_complete": MOVES,
    "on_exit": ("park_queue",),
}
"""Event → what it may do."""
LONGEST_PROMPT: Final = 100_000
"""Characters of a step's prompt."""


@dataclass(frozen=True)
class Action:
    """One action, as far as it is known: `step_id` of `move_to_step`, `prompt` of `auto_start_agent`."""

    type: str
    prompt: str | None = None
    step_id: str | None = None
    on_cancel: bool = False


def actions(step: Step, event: str) -> tuple[tuple[Action, ...], tuple[str, ...]]:
    """Those of a stored step, and sentences about what is not understood and therefore left out."""
    stored = step.events.get(event, [])
    if not isinstance(stored, list):
        return (), (f"Step {step.name!r}: {event} is no list of actions.",)
    known, strange = list[Action](), list[str]()
    for given in stored:
        wrong = _wrong(event, given)
        if wrong is None:
            members = {name: given[name] for name in ("prompt", "step_id", "on_cancel") if name in given}
            known.append(Action(given["type"], **members))
        else:
            strange.append(f"Step {step.name!r}: {event}: {wrong}.")
    return tuple(known), tuple(strange)


def checked(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps of one workflow as they are stored: a step that an action names by `step_name` is kept by its
    id, so that it may be renamed. Raises Invalid: one sentence that names the step and the action."""
    return tuple(checked_step(step, steps) for step in steps)


def checked_step(step: Step, steps: Sequence[Step]) -> Step:
    """The same of one of them."""
    return replace(step, events=_checked(step, steps))


def named(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The other way, for documents without ids."""
    names = {step.id: step.name for step in steps}

    def by_name(given: Any) -> Any:
        if not isinstance(given, dict) or given.get("step_id") not in names:
            return given
        rest = {name: value for name, value in given.items() if name != "step_id"}
        return {**rest, "step_name": names[given["step_id"]]}

    return tuple(replace(step, events=_each(step.events, by_name)) for step in steps)


def leads_to(step: Step, target: str) -> bool:
    """Whether an action of it moves tasks to the step with this id."""
    return any(isinstance(given, dict) and given.get("step_id") == target for given in _all(step.events))


def _all(events: Mapping[str, Any]) -> Iterator[Any]:
    for stored in events.values():
        yield from stored if isinstance(stored, list) else ()


def _each(events: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    return {
        name: [change(given) for given in stored] if isinstance(stored, list) else stored
        for name, stored in events.items()
    }


def _checked(step: Step, steps: Sequence[Step]) -> dict[str, Any]:
    for event, stored in step.events.items():
        if event not in ACTIONS:
            raise Invalid(
                f"Step {step.name!r} has an event {event!r}, which is unknown: take one of {_list(ACTIONS)}."
            )
        if not isinstance(stored, list):
            raise Invalid(f"Step {step.name!r}: {event} is a list of actions, each with a type.")
        if len(stored) > 1:
            raise Invalid(f"Step {step.name!r}: {event} does one thing; leave one of its actions.")
    return {
        event: [_resolved(step, event, given, steps) for given in stored]
        for event, stored in step.events.items()
    }


def _resolved(step: Step, event: str, given: Any, steps: Sequence[Step]) -> dict[str, Any]:
    where = f"Step {step.name!r}: {event}"
    named = isinstance(given, dict) and given.get("type") == "move_to_step" and "step_name" in given
    target: Step | None = None
    if named:
        found = [other for other in steps if other.name == given["step_name"]]
        if "step_id" in given or len(found) != 1:
            why = "say either step_id or step_name" if "step_id" in given else _which(given, len(found))
            raise Invalid(f"{where}: move_to_step: {why}.")
        target = found[0]
        rest = {name: value for name, value in given.items() if name != "step_name"}
        given = {**rest, "step_id": target.id}
    if (wrong := _wrong(event, given)) is not None:
        raise Invalid(f"{where}: {wrong}.")
    if given["type"] == "move_to_step":
        target = next((other for other in steps if other.id == given["step_id"]), None)
        if target is None:
            raise Invalid(f"{where}: move_to_step: no step of this workflow has the id {given['step_id']!r}.")
        if target.id == step.id:
            raise Invalid(f"{where}: move_to_step: a step cannot move a task to itself.")
    known: dict[str, Any] = given
    return known


def _which(given: Mapping[str, Any], found: int) -> str:
    if found:
        return f"{found} steps of this workflow are named {given['step_name']!r}; say which by step_id"
    return f"no step of this workflow is named {given['step_name']!r}"


def _wrong(event: str, given: Any) -> str | None:
    """What is wrong with an action, whatever other steps there are; None: nothing."""
    if not isinstance(given, dict) or not isinstance(given.get("type"), str):
        return "an action is an object with a type"
    kind = given["type"]
    if kind not in ACTIONS.get(event, ()):
        return f"the action {kind!r} is unknown there; it is one of {_list(ACTIONS.get(event, ()))}"
    known = _members(event, kind)
    if strange := sorted(str(name) for name in given if name not in known):
        return f"{kind} does not know {', '.join(strange)}"
    return _wrong_member(kind, given)


def _members(event: str, kind: str) -> set[str]:
    more = {"auto_start_agent": {"prompt"}, "move_to_step": {"step_id"}}.get(kind, set())
    return {"type", *more, *(("on_cancel",) if event == "on_turn_complete" else ())}


def _wrong_member(kind: str, given: Mapping[str, Any]) -> str | None:
    prompt = given.get("prompt", "-")
    if not isinstance(prompt, str) or not prompt.strip():
        return f"{kind}: prompt is a text that says something, or left out"
    if len(prompt) > LONGEST_PROMPT:
        return f"{kind}: prompt is longer than {LONGEST_PROMPT} characters"
    if not isinstance(given.get("on_cancel", False), bool):
        return f"{kind}: on_cancel is true or false"
    if kind == "move_to_step" and not isinstance(given.get("step_id"), str):
        return f"{kind}: say where to, by step_id or step_name"
    return None


def _list(words: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(words)
