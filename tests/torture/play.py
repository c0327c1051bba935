"""Carries out what a plan says about people: one player for each slot, one for the tasks. Keeps the books."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.e2e.kandev import DEADLINE_S, CallFailed
from tests.e2e.scenes import profile, repository, repository_id
from tests.torture.house import House
from tests.torture.ledger import Asked, Ledger, Sent, now
from tests.torture.plan import AGENTS, TASK_OF_SLOT, Deed, Plan
from tests.torture.watcher import Watcher

AT_ONCE = 4
"""Requests of one slot that may be under way together."""


class Board:
    """What all players share: the house, the books, the tasks, who watches."""

    def __init__(self, house: House, ledger: Ledger, plan: Plan) -> None:
        self.house, self.ledger, self.plan = house, ledger, plan
        self.tasks: list[str] = []
        self.profile = ""
        self.others: list[str] = []
        """Profiles of agents with habits (`AGENTS`)."""
        self.watchers: list[Watcher] = []
        self._numbers = itertools.count(1)

    async def set_up(self) -> None:
        """The agents whose every word is written down, and the tasks; the last works on a repository."""
        self.tasks.clear()
        self.others.clear()
        env = {"MOCK_AGENT_LOG": str(self.house.agent_logs)}
        env |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        self.profile = await profile(self.house, name="Tortured", env=env)
        for start, more in AGENTS:
            habits = {**env, "MOCK_AGENT_START": start}
            self.others.append(await profile(self.house, name=f"Other {start}", env=habits, **more))
        folder = repository(self.house.home.parent / f"repository-{next(self._numbers)}")
        self.repositories = [{"repository_id": await repository_id(self.house, folder)}]
        for number in range(max(TASK_OF_SLOT) + 1):
            self.tasks.append(await self.new_task(number))

    async def new_task(self, number: int = 0) -> str:
        """Its id."""
        works_on: dict[str, Any] = {"repositories": self.repositories} if number == max(TASK_OF_SLOT) else {}
        made = await self.house.task(agent_profile_id=self.profile, **works_on)
        return str(made["task"]["id"])

    def watch(self, session_id: str) -> Watcher:
        """From its first notification on."""
        watcher = Watcher(self.house, session_id)
        self.watchers.append(watcher)
        return watcher

    async def leave(self) -> None:
        """All clients hang up."""
        for watcher in self.watchers:
            await watcher.close()
        await self.house.hang_up()

    def letter(self, task_id: str, session_id: str, script: str, key: str | None = None) -> Sent:
        """A new message, in the books before it is sent."""
        token = f"tk-{self.plan.seed}-{next(self._numbers)}-"
        sent = Sent(token, task_id, session_id, f"say {token}\n{script}".strip(), key)
        self.ledger.sent[token] = sent
        return sent

    async def up(self) -> None:
        """Until there is a backend to ask."""
        async with asyncio.timeout(DEADLINE_S):
            await self.house.up.wait()

    async def ask(self, action: str, payload: dict[str, Any]) -> Asked:
        """One request, whatever becomes of it."""
        asked = Asked(action, payload)
        self.ledger.asked.append(asked)
        try:
            asked.answer = await self.house.call(action, payload)
        except CallFailed as refused:
            asked.refusal = (refused.code, refused.error)
        except (httpx.HTTPError, ValueError) as broken:
            self._unheard(f"{action} {payload}", broken)
            return asked
        asked.answered_at = now()
        return asked

    async def deliver(self, sent: Sent) -> None:
        """`message.add`, once."""
        payload = {"task_id": sent.task_id, "session_id": sent.session_id, "content": sent.content}
        if sent.key is not None:
            payload["idempotency_key"] = sent.key
        try:
            sent.answers.append(await self.house.call("message.add", payload))
        except CallFailed as refused:
            sent.refusals.append((refused.code, refused.error))
        except (httpx.HTTPError, ValueError) as broken:
            self._unheard(f"message.add {sent.token}", broken)
            sent.unanswered += 1

    def _unheard(self, asked: str, broken: Exception) -> None:
        """A connection may break; waiting without an answer may not be."""
        if isinstance(broken, httpx.TimeoutException):
            self.ledger.hung.append(asked)

    async def insist(self) -> None:
        """Messages with a key that heard nothing are sent again until somebody answers."""
        for sent in list(self.ledger.sent.values()):
            while sent.key and not sent.answers and not sent.refusals:
                await self.up()
                await self.deliver(sent)

    async def release(self) -> None:
        """Sessions with messages that wait are taken up again, and get one more if the queue is parked: the
        others follow behind it."""
        for task_id in self.tasks:
            listed = await self.ask("task.session.list", {"task_id": task_id})
            for session in (listed.answer or {}).get("sessions", []):
                if session["queue"]["count"] and session["state"] in ("CANCELLED", "FAILED"):
                    await self.ask("session.recover", {"session_id": session["id"]})
                if session["queue"]["count"] and not session["queue"]["auto_run"]:
                    await self.deliver(self.letter(task_id, session["id"], "say released"))


class Player:
    """The person of one slot."""

    def __init__(self, board: Board, slot: int) -> None:
        self.board, self.slot = board, slot
        self.session_id: str | None = None
        self._watcher: Watcher | None = None
        self._rng = random.Random(slot)
        self._kinds: dict[str, Callable[[Deed], Awaitable[None]]] = {
            "message": self._message,
            "keyed": self._keyed,
            "again": self._again,
            "side by side": self._side_by_side,
            "vanish": self._vanish,
            "cancel": self._cancel,
            "answer": self._answer,
            "remove": self._remove,
            "stop": self._stop,
            "recover": self._recover,
            "fresh": self._fresh,
            "delete": self._delete,
            "look": self._look,
            "rejoin": self._rejoin,
            "fresh elsewhere": self._fresh_elsewhere,
        }

    @property
    def _task_id(self) -> str:
        return self.board.tasks[TASK_OF_SLOT[self.slot]]

    async def play(self, deeds: tuple[Deed, ...]) -> None:
        """All of them, several under way at once."""
        room = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            await self._fresh(Deed("fresh", 0, "", self.slot))
            for deed in deeds:
                await asyncio.sleep(deed.pause_s)
                await room.acquire()
                done = group.create_task(self._do(deed), name=f"{self.slot} {deed.kind}")
                done.add_done_callback(lambda _: room.release())

    async def _do(self, deed: Deed) -> None:
        await self.board.up()
        if self.session_id is None and deed.kind != "fresh":
            await self._fresh(deed)
        await self._kinds[deed.kind](deed)

    async def _ask(self, action: str, **more: Any) -> Asked:
        return await self.board.ask(action, {"session_id": self.session_id or "none", **more})

    # -- deeds ------------------------------------------------------------------------------------

    def _letter(self, deed: Deed, key: str | None = None) -> Sent:
        return self.board.letter(self._task_id, self.session_id or "none", deed.script, key)

    async def _message(self, deed: Deed) -> None:
        sent = self._letter(deed)
        await self.board.deliver(sent)
        if sent.refusals and deed.number % 2:
            await self._recover(deed)

    async def _keyed(self, deed: Deed) -> None:
        sent = self._letter(deed, f"key {deed.number} {len(self.board.ledger.sent)}")
        await self.board.deliver(sent)

    async def _again(self, deed: Deed) -> None:
        """The same message once more, with the same key."""
        known = [s for s in self.board.ledger.sent.values() if s.key and s.session_id == self.session_id]
        if known:
            await self.board.deliver(known[deed.number % len(known)])

    async def _side_by_side(self, deed: Deed) -> None:
        sent = self._letter(deed, f"key {deed.number} {len(self.board.ledger.sent)}")
        await asyncio.gather(*(self.board.deliver(sent) for _ in range(3)))

    async def _vanish(self, deed: Deed) -> None:
        """The request is on the wire when the client hangs up."""
        sent = self._letter(deed, f"key {deed.number}")
        payload = {"task_id": sent.task_id, "session_id": sent.session_id, "content": sent.content}
        frame = {"id": "1", "type": "request", "action": "message.add"}
        frame |= {"payload": {**payload, "idempotency_key": sent.key}}  # type: ignore[dict-item]
        sent.unanswered += 1
        with suppress(OSError, WebSocketException, TimeoutError):
            address = self.board.house.url.replace("http", "ws", 1) + "/ws"
            async with connect(address, proxy=None) as socket:
                await socket.send(json.dumps(frame))
                socket.transport.abort()

    async def _cancel(self, deed: Deed) -> None:
        await self._ask("agent.cancel")

    async def _answer(self, deed: Deed) -> None:
        await answer_permissions(self.board, self.session_id or "none", deed.number)

    async def _remove(self, deed: Deed) -> None:
        queue = await self._ask("message.queue.get")
        entries = (queue.answer or {}).get("entries", [])
        if entries:
            await self._ask("message.queue.remove", entry_id=entries[deed.number % len(entries)]["id"])

    async def _stop(self, deed: Deed) -> None:
        await self._ask("session.stop", force=deed.number % 3 == 0)

    async def _recover(self, deed: Deed) -> None:
        if deed.number % 4:
            await self._ask("session.recover")
            return
        await self._launch(intent="resume", session_id=self.session_id, script=deed.script)

    async def _fresh(self, deed: Deed) -> None:
        """A new session in this slot; the old one goes on by itself."""
        session_id = await self._launch(intent="start", script=deed.script if deed.number % 4 else None)
        if session_id is not None:
            self.session_id = session_id
            self._watcher = self.board.watch(session_id)

    async def _fresh_elsewhere(self, deed: Deed) -> None:
        """With an agent that has habits of its own."""
        other = self.board.others[deed.number % len(self.board.others)]
        session_id = await self._launch(intent="start", script=deed.script, agent_profile_id=other)
        if session_id is not None:
            self.session_id = session_id
            self._watcher = self.board.watch(session_id)

    async def _launch(self, *, script: str | None, **more: Any) -> str | None:
        payload = {"task_id": self._task_id, **{k: v for k, v in more.items() if v is not None}}
        sent = None
        if script is not None:
            sent = self.board.letter(self._task_id, str(more.get("session_id", "")), script)
            payload["prompt"] = sent.content
        asked = await self.board.ask("session.launch", payload)
        if sent is not None:
            sent.launched = asked.answer is not None
            sent.unanswered += asked.answer is None
        if asked.answer is None:
            return None
        session_id = str(asked.answer["session_id"])
        if sent is not None:
            sent.session_id = session_id
        return session_id

    async def _delete(self, deed: Deed) -> None:
        session_id = self.session_id
        asked = await self._ask("session.delete")
        if asked.answer is not None and self.session_id == session_id:
            self.session_id = None

    async def _look(self, deed: Deed) -> None:
        await self._ask("session.explain")
        await self._ask("session.get")

    async def _rejoin(self, deed: Deed) -> None:
        if self._watcher is not None:
            self._watcher.rejoin()


async def answer_permissions(board: Board, session_id: str, number: int) -> None:
    """All that wait in the session, each in its own way."""
    listed = await board.ask("message.list", {"session_id": session_id, "limit": 500})
    messages = (listed.answer or {}).get("messages", [])
    for message in messages:
        if message["type"] != "permission_request" or message["metadata"].get("status") != "pending":
            continue
        way = ({"option_id": "allow_once"}, {"rejected": True}, {"cancelled": True})[number % 3]
        payload = {"session_id": session_id, "request_id": message["metadata"]["request_id"], **way}
        await board.ask("permission.respond", payload)


async def play_tasks(board: Board, deeds: tuple[Deed, ...]) -> None:
    """What is done to whole tasks."""
    for deed in deeds:
        await asyncio.sleep(deed.pause_s)
        await board.up()
        number = deed.number % len(board.tasks)
        task_id = board.tasks[number]
        match deed.kind:
            case "stop task":
                await board.ask("orchestrator.stop", {"task_id": task_id, "force": deed.number % 2 == 0})
            case "archive":
                await board.ask("task.archive", {"id": task_id})
                await asyncio.sleep(0.2)
                await board.up()
                await board.ask("task.unarchive", {"id": task_id})
            case "delete task":
                await board.ask("task.delete", {"id": task_id})
                await board.up()
                with suppress(httpx.HTTPError, CallFailed):
                    board.tasks[number] = await board.new_task(number)
