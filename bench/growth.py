"""What an operation costs on a growing board: each asked for many times, beside its cost on the smallest
one.

Tasks are made through the door, and spread over the columns. A message goes to a session that waits; its
cost is the time until it is answered as taken by the agent. A snapshot and a whole list hold every task, and
may grow with them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from bench.client import Client, connected
from bench.figures import Row, Spread, ms
from bench.ground import Ground
from bench.program import MOCK, Board, Live, running

PAGE = 4
"""So short that the smallest board fills one from its middle on."""
AT_ONCE = 32
"""Tasks that are made side by side."""

Operation = Callable[[int], Awaitable[object]]


async def measure(ground: Ground) -> Sequence[Row]:
    """Every operation on every board."""
    costs: dict[str, dict[int, Spread]] = {}
    async with (
        running(ground.folder / "home") as kandev,
        connected(kandev.url) as client,
        connected(kandev.url) as onlooker,
    ):
        board = await Board.of(client)
        (live,) = await board.sessions(1, MOCK)
        tasks = [live.task_id]
        for size in ground.sizes.boards:
            tasks += await _fill(board, size - len(tasks))
            operations = {
                **_operations(board, live, tasks),
                "workspace.subscribe": _snapshot(onlooker, board),
            }
            asked = ground.sizes.asked
            for name, operation in operations.items():
                costs.setdefault(name, {})[size] = ms(await _times(operation, asked))
            costs.setdefault("message.add", {})[size] = ms(await _messages(live, asked))
            tasks = await _all(client, board)
    return [row for name, found in costs.items() for row in _rows(ground, name, found)]


def _rows(ground: Ground, name: str, found: dict[int, Spread]) -> list[Row]:
    smallest, largest = min(found), max(found)
    budgets = {"task.move": ground.budget(50, "p95"), "workspace.subscribe": ground.budget(1000, "p95")}
    of = f"{smallest:,} tasks"
    return [
        Row(
            f"{name}, {size:,} tasks",
            "ms",
            cost,
            found[smallest],
            of,
            budgets.get(name) if size == largest else None,
        )
        for size, cost in found.items()
        if size != smallest
    ]


async def _fill(board: Board, count: int) -> list[str]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> str:
        async with places:
            return await board.task(number)

    return list(await asyncio.gather(*(one(number) for number in range(count))))


async def _all(client: Client, board: Board) -> list[str]:
    listed = await client.ask("task.list", workspace_id=board.workspace_id)
    return [task["id"] for task in listed["tasks"]]


def _snapshot(onlooker: Client, board: Board) -> Operation:
    """By another connection than the one that hears the session."""
    return lambda _: onlooker.ask("workspace.subscribe", workspace_id=board.workspace_id)


def _operations(board: Board, live: Live, tasks: Sequence[str]) -> dict[str, Operation]:
    client = board.client
    middle = tasks[len(tasks) // 2]
    of = {"workspace_id": board.workspace_id}
    return {
        "task.get": lambda _: client.ask("task.get", id=middle),
        "task.list, a page": lambda _: client.ask("task.list", **of, limit=PAGE, cursor=middle),
        "task.list, all": lambda _: client.ask("task.list", **of),
        "task.move": lambda n: client.ask("task.move", id=middle, workflow_step_id=board.steps[n % 2]),
        "session.get": lambda _: client.ask("session.get", session_id=live.id),
        "task.create": lambda _: client.ask("task.create", **board.new_task()),
    }


async def _times(operation: Operation, count: int) -> list[float]:
    times: list[float] = []
    for number in range(count):
        began = time.monotonic()
        await operation(number)
        times.append(time.monotonic() - began)
    return times


async def _messages(live: Live, count: int) -> list[float]:
    """Each to a session that waits."""
    times: list[float] = []
    for _ in range(count):
        live.notes.forget()
        began = time.monotonic()
        at, _ = await live.say("say hello")
        times.append(at - began)
        await live.idle()
    return times
