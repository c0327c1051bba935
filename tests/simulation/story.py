"""A story is one interleaving that a test forces, told over the rig and played in many orders.

`@in_every_order` makes a test of it. Steps wait for conditions and gates, in virtual time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from kandev.core.session import Session
from kandev.usecases import add_message, launch_session
from kandev.usecases.context import Context
from tests.simulation.loop import Domain, SeededLoop
from tests.simulation.rig import Rig, watched
from tests.simulation.verdict import judge, restless

T = TypeVar("T")
ORDERS = 12
DEADLINE_S = 600.0
TABLES = ("tasks", "sessions", "turns", "entries", "executions", "messages", "streams", "notifications")


class Story:
    """One rig, with words for what people do. Times are virtual seconds."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self.faults, self.world = rig, rig.faults, rig.world
        self.people = Domain("people")
        self._messages = 0

    @property
    def ctx(self) -> Context:
        assert self.rig.backend is not None
        return self.rig.backend.ctx

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def ask(self, request: Awaitable[T]) -> asyncio.Task[T]:
        """Begin a request; it goes on beside the story."""

        async def asked() -> T:
            return await request

        assert self.rig.backend is not None
        with self.rig.backend.domain.entered():
            return asyncio.create_task(asked())

    async def until(self, true: Callable[[], object]) -> None:
        """Wait for it. Fails after ten minutes."""
        end = self.now + DEADLINE_S
        while not true():
            assert self.now < end, "it never became true"
            await asyncio.sleep(0.005)

    async def calm(self) -> None:
        """Open every gate, let everything come to rest, and judge the whole."""
        for gate in self.faults.gates.values():
            gate.open()
        self.faults.gates.clear()
        self.faults.settle()
        await self.until(lambda: not restless(self.rig))
        await asyncio.sleep(60)
        judge(self.rig)
        await self.rig.close()

    # -- people -------------------------------------------------------------------------------------

    async def launched(self, script: str = "", task: str = "t1") -> str:
        """A session whose agent has got its first message."""
        handed = len(self.world.handed)
        self._messages += 1
        prompt = f"say m{self._messages}\n{script}"
        done = await launch_session.launch_session(self.ctx, task_id=task, prompt=prompt)
        await self.until(lambda: len(self.world.handed) > handed)
        if not script or script.startswith("exit"):
            await self.until(lambda: self.value(done.session_id).turn is None)
        else:
            await self.until(lambda: self.running(done.session_id))
        return done.session_id

    def message(self, session: str, script: str = "") -> asyncio.Task[add_message.Added]:
        """`m2`, `m3`, … in the order of asking."""
        self._messages += 1
        content = f"say m{self._messages}\n{script}"
        task = self.task_of(session)
        return self.ask(add_message.add_message(self.ctx, task_id=task, session_id=session, content=content))

    # -- what is there ------------------------------------------------------------------------------

    def value(self, session: str) -> Session:
        found = self.rig.watch.stored(session)
        assert found is not None
        return found

    def running(self, session: str) -> bool:
        turn = self.value(session).turn
        return turn is not None and turn.taken

    def state(self, session: str) -> str:
        return str(self._one("SELECT state FROM sessions WHERE id = ?", session))

    def task_of(self, session: str) -> str:
        return str(self._one("SELECT task_id FROM sessions WHERE id = ?", session))

    def task_state(self, task: str = "t1") -> str:
        return str(self._one("SELECT state FROM tasks WHERE id = ?", task))

    def _one(self, query: str, key: str) -> Any:
        return self.rig.rows.execute(query, (key,)).fetchone()[0]

    def fates(self, session: str) -> dict[str, str]:
        """State of each message's entry, by its token."""
        rows = self.rig.rows.execute(
            "SELECT content, state FROM entries WHERE session_id = ? ORDER BY place", (session,)
        )
        return {content.split()[1]: state for content, state in rows}

    def handed(self) -> list[str]:
        """What agents got, in order."""
        return [token for handed in self.world.handed for token in handed.tokens]

    def lines(self, session: str) -> list[str]:
        """Kandev's own lines in the transcript."""
        rows = self.rig.rows.execute(
            "SELECT content FROM messages WHERE session_id = ? AND author_type = 'system' ORDER BY seq",
            (session,),
        )
        return [content for (content,) in rows]

    def moves(self, session: str) -> list[tuple[str, str]]:
        """Every change of the session's state that was told, in order."""
        told = [json.loads(payload) for payload in self.told(session, "session.state_changed")]
        return [(payload["old_state"], payload["new_state"]) for payload in told]

    def told(self, session: str, action: str) -> list[str]:
        """Payloads of the session's notifications, as JSON text."""
        rows = self.rig.rows.execute(
            "SELECT payload FROM notifications WHERE stream = 'session' AND stream_id = ? AND action = ? "
            "ORDER BY seq",
            (session, action),
        )
        return [str(payload) for (payload,) in rows]

    def everything(self) -> list[Any]:
        """Every row that a session or task could have changed, bit for bit."""
        return [self.rig.rows.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES]


Told = Callable[[Story], Coroutine[Any, Any, None]]


def in_every_order(told: Told) -> Callable[[], None]:
    """A test that plays the story with several seeds; small delays come with the odd ones."""

    def test() -> None:
        for seed in range(ORDERS):
            _play(told, seed)

    test.__name__, test.__doc__, test.__module__ = told.__name__, told.__doc__, told.__module__
    return test


def _play(told: Told, seed: int) -> None:
    loop = SeededLoop(seed)
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(_told(told, seed))
    finally:
        asyncio.set_event_loop(None)
        loop.finish()


async def _told(told: Told, seed: int) -> None:
    rig = Rig(seed)
    rig.faults.quiet = seed % 2 == 0
    people = Domain("people")
    with watched(rig):
        try:
            await rig.start()
            with people.entered():
                telling = asyncio.create_task(told(Story(rig)))
            await asyncio.wait({telling})
            if rig.watch.first is not None:
                raise rig.watch.first
            telling.result()
        finally:
            await people.end()
            await rig.abandon()
