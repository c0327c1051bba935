"""The maker of real agents: a marked process with its own environment, and the adapter of its protocol.

Not here: what an instance does with them.
"""

import os

from kandev.agentctl.adapters.acp import AcpAdapter
from kandev.agentctl.adapters.base import Adapter, Sink, StartFailed
from kandev.agentctl.maker import Process
from kandev.agentctl.process import AgentProcess, agent_environment, past_proxies, spawn
from kandev.agentctl.settings import Settings
from kandev.wire import agentctl as wire


class Programs:
    """The maker of real agents. `marks` are the variables by which another agentctl of this home finds
    their processes."""

    def __init__(self, marks: dict[str, str]) -> None:
        self._marks = marks

    async def spawn(self, spec: wire.CreateInstance, settings: Settings) -> Process:
        environment = past_proxies(agent_environment(os.environ, {**spec.env, **self._marks}))
        return await spawn(spec.execution_id, list(spec.command), spec.cwd, environment, settings)

    def adapter(self, process: Process, sink: Sink, spec: wire.CreateInstance, settings: Settings) -> Adapter:
        if spec.protocol != "acp":
            raise StartFailed(
                f"Agents of the protocol {spec.protocol!r} cannot be started yet; use one that speaks ACP."
            )
        if not isinstance(process, AgentProcess):
            raise TypeError("An ACP adapter speaks to an AgentProcess.")
        return AcpAdapter(process, sink, settings, auth_method=spec.auth_method)
