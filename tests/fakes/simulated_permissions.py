"""The permission requests of one simulated agent: open ones, and how each was answered.

Not here: which turn one belongs to, and whose end answers it (`simulated_execution`).
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol

from kandev.core import inputs, transcript
from kandev.core.session import Answer, TurnRef


@dataclass(eq=False)
class SimPermission:
    turn: TurnRef
    answer: asyncio.Future[str]


class Journal(Protocol):
    """Takes a report."""

    def append(self, report: Any) -> None: ...


class SimPermissions:
    """Those of one execution."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._open: dict[str, SimPermission] = {}

    def ask(self, ref: TurnRef, ask: transcript.PermissionAsk) -> asyncio.Future[str]:
        """Opens a request; the outcome's words."""
        self._journal.append(inputs.PermissionAsked(ref, ask))
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._open[ask.request_id] = SimPermission(ref, answer)
        return answer

    def holds(self, ref: TurnRef) -> bool:
        return any(one.turn == ref for one in self._open.values())

    def answer(self, request: str, answer: Answer) -> None:
        if (one := self._open.pop(request, None)) is None:
            return
        option_id = "reject_once" if answer.rejected else answer.option_id
        outcome = "cancelled" if option_id is None else "selected"
        self._resolve(request, one, outcome, "client", answer.option_id)
        one.answer.set_result(outcome if option_id is None else f"selected {option_id}")

    def approve(self, request: str) -> None:
        """By itself."""
        one = self._open.pop(request)
        self._resolve(request, one, "selected", "auto_approve", "allow_once")
        one.answer.set_result("selected allow_once")

    def cancel(self, ref: TurnRef | None, by: str) -> None:
        """Those of a turn; None: all."""
        for request, one in list(self._open.items()):
            if ref is None or one.turn == ref:
                del self._open[request]
                self._resolve(request, one, "cancelled", by)
                one.answer.set_result("cancelled")

    def _resolve(
        self, request: str, one: SimPermission, outcome: str, by: str, option_id: str | None = None
    ) -> None:
        self._journal.append(
            inputs.PermissionDone(one.turn, request, outcome=outcome, by=by, option_id=option_id)
        )
