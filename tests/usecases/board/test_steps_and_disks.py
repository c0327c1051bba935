"""A step that is entered while one write of the store fails, whichever it is, before or behind its commit."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from kandev.core.errors import KandevError, StoreFault
from kandev.storage.sql.inline import InlineStore, Point
from kandev.usecases.owed_steps import do_owed
from tests.gateway.house import WAIT_S, House, open_house
from tests.usecases.board.cards import PLAN_AND_BUILD, Card, allow, card


@dataclass
class OneFault:
    """Fails the n-th write after it was armed; `seen` counts them."""

    at: int
    kind: Point
    seen: int = 0

    async def __call__(self, point: Point) -> None:
        await asyncio.sleep(0)
        if point != self.kind:
            return
        self.seen += 1
        if self.seen == self.at:
            raise StoreFault("the disk is full")


async def comes_to_rest(it: Card) -> None:
    """What is owed is done, as by the sweep, and no session works."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                await do_owed(it.house.ctx, it.id)
                row = await it.row()
            except KandevError:
                continue
            if row.owed_enter is None and await it.where() == ("Build", "REVIEW"):
                return
            await asyncio.sleep(0.01)


async def _scene(house: House, fault: OneFault, other_is_primary: bool) -> Card:
    """A turn is completed in Plan and the card enters Build; its prompt goes to this session or another."""
    it = await card(house, *PLAN_AND_BUILD)
    if other_is_primary:
        prepared = await house.ok("session.launch", task_id=it.id, intent="prepare")
        assert (await house.ok("session.get", session_id=prepared["session_id"]))["is_primary"]
    await it.launch("ask Go on?")
    await house.until(it.session, "RUNNING")
    async with asyncio.timeout(WAIT_S):
        while not [m for m in (await _messages(house, it.session)) if m["type"] == "permission_request"]:
            await asyncio.sleep(0.01)
    cast(InlineStore, house.ctx.store)._hook = fault
    for _ in range(2):  # the decision itself may meet the fault, or be taken and said to have failed
        with contextlib.suppress(AssertionError):
            await allow(house, it.session)
    await comes_to_rest(it)
    return it


async def _messages(house: House, session_id: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = (await house.ok("message.list", session_id=session_id))["messages"]
    return found


@pytest.mark.proves("SURVIVE-backend-kill")
@pytest.mark.parametrize("other_is_primary", [False, True])
@pytest.mark.parametrize("kind", ["write", "answer"])
async def test_whichever_write_fails_the_card_moves_once_and_the_prompt_is_sent_once(
    tmp_path: Path, kind: Point, other_is_primary: bool
) -> None:
    at = 0
    while True:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        fault = OneFault(at, kind)
        async with open_house(folder) as house:
            it = await _scene(house, fault, other_is_primary)
            sessions = (await house.ok("task.session.list", task_id=it.id))["sessions"]
            sent = [text for s in sessions for text in await it.sent(s["id"])]
            assert sorted(sent) == ["ask Go on?", "sleep 0.2"], f"{kind} {at}"
            assert (await it.row()).entered == 1, f"{kind} {at}"
            assert len(sessions) == 1 + other_is_primary
        if fault.seen < at:
            break
    assert at > 5, "there were writes to fail"
