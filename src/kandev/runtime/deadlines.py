"""Every time constant and limit of turn control, in seconds. Set by the settings; tests shrink them."""

import math
from dataclasses import dataclass
from typing import Final

from kandev.core.effects import Timer

UNANSWERED_S: Final = 2.0
"""How much later than agentctl's own deadline we claim a turn's end: agentctl answers first unless it is
gone."""


@dataclass(frozen=True)
class Deadlines:
    """What happens at each is said beside it."""

    message_answer_s: float = 20.0
    """The sender hears what is true then (`queued`); delivery goes on."""
    prompt_accept_s: float = 10.0
    """Then agentctl is asked about the dispatch id, and the process given up if that tells nothing."""
    cancel_acknowledge_s: float = 5.0
    """Then the turn's end is claimed and the process replaced."""
    launch_s: float = 120.0
    """The launch failed and is rolled back."""
    worktree_s: float = 120.0
    """Preparing the worktree, apart from the launch."""
    teardown_s: float = 10.0
    """The whole ladder; then the execution is LOST, and still tried."""
    agentctl_call_s: float = 10.0
    """The call's result is unknown: ask again, then treat as lost."""
    agentctl_lost_s: float = 30.0
    """agentctl cannot be reached for so long: its execution is treated as ended."""
    commit_s: float = 5.0
    """The ask fails as internal."""
    refusal_retry_s: float = 1.0
    """Before a refused entry is tried again; doubled with each refusal."""
    idle_sleep_s: float = 1800.0
    """An agent that has nothing to do for so long is put to sleep: its process ends, its conversation is kept
    (0: never)."""
    question_s: float = 7200.0
    """A question of an agent that nobody answered expires."""
    sweep_s: float = 15.0
    """Look for entries that nobody drains."""
    silent_notice_s: float = 300.0
    """`session.explain` says that the agent is silent; nothing is ended by silence."""
    queue_max: int = 10
    """Entries per session that may wait (0: no limit)."""


def seconds(timer: Timer, d: Deadlines, acknowledge_s: float, refusals: int) -> float:
    """How long until it fires; infinite: never. `acknowledge_s` is the profile's, `refusals` how often the
    entry that waits for another try was refused."""
    if timer.kind == "retry":
        return d.refusal_retry_s * 2.0 ** (max(refusals, 1) - 1)
    return {
        "accept": d.prompt_accept_s,
        "end": acknowledge_s + d.prompt_accept_s + UNANSWERED_S,
        "start": d.launch_s + d.worktree_s + UNANSWERED_S,
        "close": d.teardown_s,
        "idle": d.idle_sleep_s or math.inf,
        "doze": d.teardown_s + d.agentctl_call_s,
        "ask": d.message_answer_s,
        "question": d.question_s or math.inf,
        # The end or the escalation answers; this is for one that hangs on a dying process.
        "cancel": acknowledge_s + d.prompt_accept_s + 2 * UNANSWERED_S,
    }[timer.kind]
