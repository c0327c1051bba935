"""Promises of the manifest about what dies, misbehaves or runs out: nothing is lost, left over or hangs.

Part of `tests/requirements.py`.
"""

from __future__ import annotations

SURVIVAL = """
SURVIVE-backend-kill: After kill -9 of the backend the next one adopts its agents; nothing is lost or doubled.
SURVIVE-flood: Output faster than the disk leaves memory bounded.
SURVIVE-agentctl-kill: After kill -9 of agentctl its agents are ended before anything resumes; turns end as lost.
SURVIVE-unknown-entry: An entry claimed without an answer is unknown, and never sent again by itself.
SURVIVE-identity: agentctl is adopted by identity: home, lock, pid, start time, token; a file that was left leads nowhere else.
SURVIVE-agentctl-hangs: An agentctl that hangs delays no answer; nothing starts beside what is not proven gone.
SURVIVE-real-agents: Real agents in mid-command, cancelled, stopped, killed at each layer, leave nothing, and their session goes on.
SURVIVE-escapees: Children that left their group and parent are found and ended.
SURVIVE-sleep: Idle executions sleep, their conversation is kept, and the next message wakes them.
OBSERVE-traces: OpenTelemetry traces are sent when an endpoint is configured.
SURVIVE-survivors: A process that could not be ended is named on the execution, in the chat, in the log and by session.explain.
SURVIVE-agent-death: An agent that dies in mid-turn ends the turn; the chat has its exit code and last stderr lines.
SURVIVE-torture: After random load and random kills of all programs messages, transcripts, processes and files add up.
SURVIVE-full-disk: A full disk is named with the way out; what was accepted stays, and work goes on when there is room.
SURVIVE-read-only: A home that cannot be written is said, at the start and while running, and loses nothing.
SURVIVE-slow-disk: A commit of seconds fails its ask in time, is found as it was stored, and doubles nothing.
SURVIVE-clock: A clock that jumps by hours fires no deadline, holds none up, and changes no order of messages or turns.
SURVIVE-suspend: After a suspension what has arrived counts before deadlines act; a backend that was replaced acts no more.
SURVIVE-descriptors: Without descriptors requests are refused in a sentence; with them everything goes on.
SURVIVE-upgrade: A database is backed up before an upgrade; a corrupt one is said and never overwritten.
SURVIVE-hostile-agent-garbage: What is no protocol costs no word of the turn around it, and the agent goes on.
SURVIVE-hostile-agent-memory: What an agent can make Kandev keep is bounded: ids, requests, options, settings, lines.
SURVIVE-hostile-agent-requests: Requests of an agent beyond the bound are refused at once, and that is said once.
SURVIVE-hostile-agent-death: An agent that dies or falls mute at any step: the end is told with code and last words, nothing is left.
SURVIVE-hostile-agent-silence: An agent that hangs at any step ends in a defined state at a deadline, or by a cancel.
SURVIVE-hostile-client-requests: Heads and bodies of requests have deadlines; one that is too large is refused early.
SURVIVE-hostile-client-frames: A WebSocket message has a largest size and number of pieces; pings cost nothing.
SURVIVE-hostile-client-log: Clients that are refused do not fill the log.
SURVIVE-slow-client: A client that takes nothing costs bounded memory, slows nobody, and is given up.
"""
