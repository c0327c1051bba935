"""Our share of what a person waits for: a prompt, a cancel, and the two in a row.

The agent stamps its first words, so that a prompt's way to it and the way of its words back are told apart.
Each round asks a bare driver of the same agent first and then Kandev, so that a loaded machine loads both.
The two in a row are a cancel and, as soon as it is answered, the next message, until that is at the agent.
An agent's interrupt of another is one step, and a benchmark of its own (`interrupt`).

The pause that agentctl makes after a cancel for the agent's sake (`cancel_settle_s`, 0.1 s by default) is
the agent's time, not ours: it is switched off here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.client import connected
from bench.driver import Bare, driven
from bench.figures import Row, ms
from bench.ground import Ground
from bench.program import STAMPING, Board, Live, running
from bench.stamps import stamp_of, update_text

SPEAK = "1 1 0"
WORK = "1000 1 600"
"""One chunk, and then nothing until the cancel."""
BARE = "bare ACP driver"
WITHOUT_PAUSE = {"KANDEV_CANCEL_SETTLE_S": "0"}


@dataclass
class Samples:
    """Seconds, in the order in which they were taken."""

    arrival: list[float] = field(default_factory=list)
    """A prompt until it is at the agent."""
    answer: list[float] = field(default_factory=list)
    """A prompt until it is answered as sent."""
    output: list[float] = field(default_factory=list)
    """A prompt until the agent's first words are here."""
    cancel: list[float] = field(default_factory=list)
    replaced: list[float] = field(default_factory=list)
    """A cancel, then a prompt, until that is at the agent."""


async def measure(ground: Ground) -> Sequence[Row]:
    """Beside one and beside many live sessions."""
    rows: list[Row] = []
    sessions: list[Live] = []
    async with (
        running(ground.folder / "home", WITHOUT_PAUSE) as kandev,
        connected(kandev.url) as client,
        driven(ground.folder / "bare", STAMPING) as bare,
    ):
        board = await Board.of(client)
        for count in ground.sizes.live:
            sessions += await board.sessions(count - len(sessions), STAMPING)
            floor, ours = Samples(), Samples()
            used = kandev.used_s()
            for number in range(ground.sizes.rounds):
                await _bare_round(bare, floor)
                await _round(sessions[number % count], ours)
            used = (kandev.used_s() - used) / ground.sizes.rounds
            rows += _rows(count, ours, floor)
            what = f"processor time of three prompts and a cancel, {_live(count)}"
            rows.append(Row(what, "ms", 1000 * used))
    return rows


def _live(count: int) -> str:
    return f"{count} live session{'s' if count > 1 else ''}"


def _rows(count: int, ours: Samples, floor: Samples) -> list[Row]:
    live = _live(count)
    both = f"cancel, then a message, until it is at the agent, {live}"
    return [
        Row(f"prompt until it is at the agent, {live}", "ms", ms(ours.arrival), ms(floor.arrival), BARE),
        Row(f"prompt until it is answered, {live}", "ms", ms(ours.answer), ms(floor.output), BARE),
        Row(f"prompt until its first output, {live}", "ms", ms(ours.output), ms(floor.output), BARE),
        Row(f"cancel until it is answered, {live}", "ms", ms(ours.cancel), ms(floor.cancel), BARE),
        Row(both, "ms", ms(ours.replaced), ms(floor.replaced), BARE),
    ]


async def _bare_round(bare: Bare, samples: Samples) -> None:
    began = time.monotonic()
    at, arrived = await _bare_prompt(bare)
    samples.output.append(at - began)
    samples.arrival.append(arrived - began)
    turn = bare.begin(WORK)
    await bare.first_update()
    began = time.monotonic()
    bare.cancel()
    at, _ = await turn
    samples.cancel.append(at - began)
    samples.replaced.append((await _bare_prompt(bare))[1] - began)


async def _bare_prompt(bare: Bare) -> tuple[float, float]:
    """When its first output came, and when it was sent; its turn is over afterwards."""
    turn = bare.begin(SPEAK)
    at, update = await bare.first_update()
    await turn
    return at, stamp_of(update_text(update))


async def _round(live: Live, samples: Samples) -> None:
    began = time.monotonic()
    answered, at, arrived = await _prompt(live)
    samples.answer.append(answered - began)
    samples.output.append(at - began)
    samples.arrival.append(arrived - began)
    await live.say(WORK)
    await live.notes.output()
    live.notes.forget()
    began = time.monotonic()
    at, answer = await live.client.timed("agent.cancel", session_id=live.id)
    if not answer["success"]:
        raise RuntimeError(f"a cancel was answered {answer}")
    samples.cancel.append(at - began)
    live.notes.forget()
    samples.replaced.append((await _prompt(live))[2] - began)


async def _prompt(live: Live) -> tuple[float, float, float]:
    """When it was answered, when its first output came, and when that was sent; its turn is over then."""
    answered, _ = await live.say(SPEAK)
    first = await live.notes.output()
    await live.idle()
    live.notes.forget()
    return answered, first.at, stamp_of(first.payload["message"]["content"])
