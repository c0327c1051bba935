"""The mock agent: an ACP agent that plays scripts, for trying Kandev out and for its tests.

It speaks the Agent Client Protocol, version 1 (JSON-RPC 2.0, one object per line, on stdin and stdout). A
prompt is a script, one line per command (`script.COMMANDS`); every other line comes back as a message of its
own, and `<kandev-context>` blocks are ignored. It is not a model of how a good agent behaves: most lines are
ways to misbehave.

Rules that the commands share:

- A cancel ends the script: the line that waits ends at once, the prompt is answered `cancelled`, the rest is
  not played.
- `deaf` throws the cancels of its time away: the script goes on as if they had never come.
- `late` waits for a cancel, for ten minutes at most, and obeys it SECONDS later.
- `lose N` holds for the turn in which it stands.
- A cancelled `ask` waits two seconds for the client's answer, says it, and ends then.
- `wake` waits for a running prompt's end, because what it says belongs to no prompt.
- `recall` (one more line) says the earlier prompts of the conversation: `recall: first | second`.

A closed stdin, SIGTERM and SIGINT end the process, in the middle of a turn too.

The environment changes how it starts, for tests of those who start agents:

- `MOCK_AGENT_START`: a comma-separated list of `silent` (nothing is ever answered), `exit N` (ends at once
  with that code), `garbage` (lines that are not JSON come first), `bare` (`initialize` answers the protocol
  version only), `noload` (load is not offered), `nohttp` (HTTP tool servers are not offered), `slow SECONDS`
  (`initialize` takes so long), `tools` (tool servers are connected to before `session/new` is answered).
- `MOCK_AGENT_LOGIN=1`: `session/new` demands authentication, as after the line `login`. `authenticate` lifts
  it.
- `MOCK_AGENT_LOG=PATH`: every line that comes in or goes out is appended there as `{"dir": "<" or ">",
  "line": …}` (`<` is what the agent received); long lines are cut. When PATH is a folder, each process has
  a file of its own there, `<execution>.<pid>.jsonl`, with whole lines and `n` and `at` (a number that grows
  by one, and nanoseconds of the monotonic clock) in each: what was received and sent can be counted and put
  in order.
"""

from __future__ import annotations

from kandev.agentctl.mock_agent.app import main

__all__ = ["main"]
