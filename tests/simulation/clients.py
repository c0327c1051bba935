"""People at the doors: each asks by a use case, notes the answer, and holds Kandev to it.

A client that is cut off (killed backend, gone away) knows nothing; one that got an answer got the truth.
"""

from __future__ import annotations

from typing import Any

from kandev.core.errors import QueueFull
from kandev.usecases import (
    add_message,
    answer_permission,
    cancel_turn,
    delete_session,
    launch_session,
    queue_entries,
    recover_session,
    stop_session,
    stop_task,
)
from tests.simulation.asker import BOUND_S, DELETE_BOUND_S
from tests.simulation.peers import Peers
from tests.simulation.rig import Backend

OVER = ("COMPLETED", "FAILED", "CANCELLED")


class Clients(Peers):
    """One schedule's askers."""

    # -- requests, and what their answers promise ---------------------------------------------------

    def message(self, session_id: str, task_id: str, content: str, key: str) -> None:
        async def request(backend: Backend) -> Any:
            try:
                added = await add_message.add_message(
                    backend.ctx, task_id=task_id, session_id=session_id, content=content, idempotency_key=key
                )
            except QueueFull as full:
                self._never(content)
                return full
            self._entry_exists(added, session_id)
            return added

        self.ask(f"message {key} to {session_id}", request)

    def launch(self, task_id: str, prompt: str) -> None:
        async def request(backend: Backend) -> Any:
            return await launch_session.launch_session(backend.ctx, task_id=task_id, prompt=prompt)

        self.ask(f"launch on {task_id}", request)

    def cancel(self, session_id: str) -> None:
        async def request(backend: Backend) -> Any:
            return await cancel_turn.cancel_turn(backend.ctx, session_id=session_id)

        self.ask(f"cancel {session_id}", request)

    def stop(self, session_id: str, *, force: bool) -> None:
        async def request(backend: Backend) -> Any:
            watch = self.rig.watch
            stops, resumes = watch.stops[session_id], watch.resumes[session_id]
            await stop_session.stop_session(backend.ctx, session_id=session_id, force=force)
            self._is_stopped(session_id, stops, resumes)

        self.ask(f"stop {session_id}", request)

    def _is_stopped(self, session_id: str, stops: int, resumes: int) -> None:
        watch = self.rig.watch
        watch.holds(watch.stops[session_id] > stops, "answers are true", f"{session_id} was not stopped")
        if watch.resumes[session_id] == resumes and watch.stored(session_id) is not None:
            watch.stopped.add(session_id)
            watch.holds(watch.state(session_id) in OVER, "answers are true", f"{session_id} goes on")

    def stop_task(self, task_id: str) -> None:
        async def request(backend: Backend) -> Any:
            watch = self.rig.watch
            stops, resumes = watch.stops.copy(), watch.resumes.copy()
            done = await stop_task.stop_task(backend.ctx, task_id=task_id)
            for session_id in done.stopped:
                self._is_stopped(session_id, stops[session_id], resumes[session_id])
            return done

        self.ask(f"stop task {task_id}", request, BOUND_S * 6)

    def resume(self, session_id: str) -> None:
        async def request(backend: Backend) -> Any:
            if self.rig.watch.state(session_id) == "CREATED":
                return await launch_session.launch_session(
                    backend.ctx,
                    task_id=self.task_of(session_id),
                    intent="start_created",
                    session_id=session_id,
                )
            return await recover_session.recover_session(backend.ctx, session_id=session_id)

        self.ask(f"resume {session_id}", request)

    def task_of(self, session_id: str) -> str:
        rows = self.rig.rows.execute("SELECT task_id FROM sessions WHERE id = ?", (session_id,)).fetchone()
        return str(rows[0]) if rows else "t0"

    def answer(self, session_id: str, request_id: str, *, how: int) -> None:
        given: dict[str, Any] = ({"option_id": "allow_once"}, {"rejected": True}, {"cancelled": True})[
            how % 3
        ]

        async def request(backend: Backend) -> Any:
            await answer_permission.answer_permission(
                backend.ctx, session_id=session_id, request_id=request_id, **given
            )

        self.ask(f"answer {request_id} with {given}", request)

    def remove(self, session_id: str, entry_id: str) -> None:
        async def request(backend: Backend) -> Any:
            return await queue_entries.remove_entry(backend.ctx, session_id=session_id, entry_id=entry_id)

        self.ask(f"remove {entry_id}", request)

    def delete(self, session_id: str) -> None:
        async def request(backend: Backend) -> Any:
            await delete_session.delete_session(backend.ctx, session_id=session_id)
            watch = self.rig.watch
            watch.holds(watch.stored(session_id) is None, "answers are true", f"{session_id} is there")
            living = self.rig.world.living(session_id)
            watch.holds(not living, "gone", f"{session_id} is deleted and {living} live")

        self.ask(f"delete {session_id}", request, DELETE_BOUND_S)
