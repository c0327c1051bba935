"""Quiet: nothing is under way in any session, and the processes are those that the sessions name."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from pathlib import Path
from typing import Any

from tests.torture.evidence import Evidence
from tests.torture.house import House, running
from tests.torture.play import Board, answer_permissions

SETTLE_S = 120.0
CALM_S = 0.6
"""So long nothing may move before it counts as quiet: agents that wake by themselves do it sooner."""
TURN = "turn"


def _sessions(database: Path) -> list[tuple[str, str, int, dict[str, Any]]]:
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        rows = connection.execute("SELECT id, state, version, value FROM sessions ORDER BY id").fetchall()
    finally:
        connection.close()
    return [(id, state, version, json.loads(value)) for id, state, version, value in rows]


def restless(database: Path) -> dict[str, str]:
    """Sessions in which something is still under way, and what; `TURN` leads for those that work."""
    found = {}
    for id, state, _, value in _sessions(database):
        runs = value["queue"] and value["parked"] is None and value["outcome"] in ("open", "completed")
        if value["turn"] is not None:
            found[id] = f"{TURN} {value['turn']}"
        elif value["launch"] not in ("absent", "ready") or value["retry"] or value["resuming"] or runs:
            found[id] = f"{state}: {value}"
    return found


def unmatched(house: House) -> dict[str, str]:
    """Executions that are ready without an agent, agents whose execution is not, and a backend that died."""
    sessions = _sessions(house.home / "kandev.db")
    ready = {f"{id}.{value['executions']}" for id, _, _, value in sessions if value["launch"] == "ready"}
    living = {one.execution for one in running(house.home) if one.execution}
    found = {str(name): f"ready: {name in ready}, alive: {name in living}" for name in ready ^ living}
    if not house.serves:
        found["backend"] = "is not there"
    return found


def stirred(evidence: Evidence, house: House) -> bool:
    """Whether something moved since the evidence was taken."""
    now = {id: version for id, _, version, _ in _sessions(house.home / "kandev.db")}
    return now != {row["id"]: row["version"] for row in evidence.books.sessions} or bool(unmatched(house))


async def settle(board: Board) -> list[str]:
    """Wait until nothing moves any more; turns that do not end by themselves are cancelled. What still moves
    at the deadline."""
    began = calm = time.monotonic()
    hushing: dict[str, asyncio.Task[None]] = {}
    try:
        while (now := time.monotonic()) - calm < CALM_S:
            moving = restless(board.house.home / "kandev.db") or unmatched(board.house)
            if now - began > SETTLE_S:
                return [f"{id}: {why}" for id, why in moving.items()]
            if moving:
                calm = now
            if now - began > board.plan.patience_s:
                for id in [id for id, why in moving.items() if why.startswith(TURN)]:
                    if id not in hushing or hushing[id].done():
                        hushing[id] = asyncio.create_task(_hush(board, id))
            await asyncio.sleep(0.05)
        return []
    finally:
        for task in hushing.values():
            task.cancel()
        await asyncio.gather(*hushing.values(), return_exceptions=True)


async def _hush(board: Board, session_id: str) -> None:
    await answer_permissions(board, session_id, 0)
    await board.ask("agent.cancel", {"session_id": session_id})
