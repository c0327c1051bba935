"""An agent on the public Python library of ACP: what it accepts from us, the protocol's authors accept."""

import asyncio
from typing import Any

import acp
from acp import schema


class LibraryAgent:
    """Uses everything that a client offers, once."""

    client: Any = None
    cwd = ""

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        info = schema.Implementation(name="library-agent", version="1")
        return schema.InitializeResponse(protocol_version=protocol_version, agent_info=info)

    async def new_session(self, cwd: str, **_: Any) -> schema.NewSessionResponse:
        self.cwd = cwd
        return schema.NewSessionResponse(session_id="library")

    async def prompt(self, session_id: str, **_: Any) -> schema.PromptResponse:
        path = f"{self.cwd}/made.txt"
        await self.client.write_text_file(content="by the agent", path=path, session_id=session_id)
        read = await self.client.read_text_file(path=path, session_id=session_id)
        await self.say(session_id, f"read:{read.content}|")
        terminal = await self.client.create_terminal(command="echo", args=["hello"], session_id=session_id)
        number = terminal.terminal_id
        exit_status = await self.client.wait_for_terminal_exit(session_id=session_id, terminal_id=number)
        output = await self.client.terminal_output(session_id=session_id, terminal_id=number)
        await self.client.release_terminal(session_id=session_id, terminal_id=number)
        await self.say(session_id, f"ran:{output.output}:{exit_status.exit_code}|")
        answer = await self.client.request_permission(
            session_id=session_id,
            tool_call=schema.ToolCallUpdate(tool_call_id="t", title="May I?"),
            options=[schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once")],
        )
        await self.say(session_id, f"allowed:{answer.outcome.option_id}|")
        return schema.PromptResponse(stop_reason="end_turn")

    async def say(self, session_id: str, text: str) -> None:
        """One chunk."""
        await self.client.session_update(session_id=session_id, update=acp.update_agent_message_text(text))


if __name__ == "__main__":
    agent: Any = LibraryAgent()
    asyncio.run(acp.run_agent(agent))
