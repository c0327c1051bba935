"""What the log tells of a session: its launches, turns and ends, with the ids that find them again.

Session and task are bound by the actor's task. Not here: faults, which are logged where they are met.
"""

import structlog

from kandev.core.effects import ExecutionOver, LaunchOver, Note, TurnClosed, TurnOpened

log = structlog.get_logger(__name__)


def tell_the_log(note: Note) -> None:
    """One line for what an operator looks for; nothing for the rest."""
    match note:
        case TurnOpened(turn):
            log.info("turn began", execution_id=turn.execution, prompt_generation=turn.generation)
        case TurnClosed(turn, stop_reason, cause, error):
            ids = {"execution_id": turn.execution, "prompt_generation": turn.generation}
            log.info("turn ended", **ids, stop_reason=stop_reason, cause=cause, error=error)
        case LaunchOver(str(error)):
            log.warning("launch failed", error=error)
        case ExecutionOver(execution, exit_code, survivors, why):
            log.info("execution over", execution_id=execution, exit_code=exit_code, why=why)
            if survivors:
                log.warning("processes could not be ended", execution_id=execution, survivors=list(survivors))
        case _:
            return
