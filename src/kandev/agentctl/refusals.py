"""How agentctl says no.

`Refused` becomes a `wire.Refusal` body; `Unsettled` becomes an answer without one, because nobody can say
whether the thing happened. Not here: which status a door gives (each refusal carries its own).
"""

from typing import Any

from kandev.wire import agentctl as wire


class Refused(Exception):
    """Certainly not done, and for a prompt: never will be. `status` is the HTTP status of the answer."""

    def __init__(self, status: int, reason: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.refusal = wire.Refusal(reason=reason, message=message, **more)  # type: ignore[arg-type]


class Unsettled(Exception):
    """Nobody can tell whether it happened. The message is one sentence."""


def unknown_instance(instance_id: str) -> Refused:
    return Refused(404, "unknown_instance", f"There is no instance {instance_id!r} here.")


def launch_failed(why: str | None, stderr_tail: list[str], exit_code: int | None) -> Refused:
    sentence = why or "The agent did not start."
    return Refused(409, "launch_failed", sentence, stderr_tail=stderr_tail, exit_code=exit_code)


def invalid(message: str, status: int = 422) -> Refused:
    return Refused(status, "invalid", message)
