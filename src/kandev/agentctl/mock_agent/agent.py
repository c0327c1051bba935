"""The ACP methods of the mock agent (protocol version 1). Scripts play in `commands`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from kandev.agentctl.mock_agent import memory, script
from kandev.agentctl.mock_agent.commands import Stage, Switches, chunks, play
from kandev.agentctl.mock_agent.mcp_client import McpFailure, Toolbox
from kandev.agentctl.mock_agent.rpc import (
    AUTH_REQUIRED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Answer,
    Connection,
    Json,
    RpcError,
)
from kandev.agentctl.mock_agent.session import MODES, Session, Turn, new_id
from kandev.agentctl.mock_agent.settings import Settings

_LOGIN = {"id": "mock-login", "name": "Mock login", "description": "Any call of authenticate succeeds."}


class Agent:
    """Answers requests and notifications of one client."""

    def __init__(self, settings: Settings, version: str) -> None:
        self._settings = settings
        self._version = version
        self._sessions: dict[str, Session] = {}
        self.switches = Switches(login=settings.login)
        self.connection: Connection
        self._methods: dict[str, Callable[[Json], Awaitable[Answer]]] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
        }
        if "noload" not in settings.flags:
            self._methods["session/load"] = self._load

    async def request(self, method: str, params: Json) -> Answer:
        """Answer one request.

        Raises:
            RpcError: what the client gets instead of a result.
        """
        if "silent" in self._settings.flags:
            await asyncio.get_running_loop().create_future()
        handler = self._methods.get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"the mock agent has no method {method!r}")
        return await handler(params)

    def notification(self, method: str, params: Json) -> None:
        """Take one notification; an unknown one is none of our business."""
        session = self._sessions.get(str(params.get("sessionId")))
        if method == "session/cancel" and session is not None and session.turn is not None:
            session.turn.cancel()

    async def close(self) -> None:
        """End the tool servers that sessions have started."""
        await asyncio.gather(*(session.toolbox.close() for session in self._sessions.values()))

    async def _initialize(self, params: Json) -> Answer:
        if self._settings.slow_s:
            await asyncio.sleep(self._settings.slow_s)
        if "bare" in self._settings.flags:
            return Answer({"protocolVersion": 1})
        capabilities = {
            "loadSession": "noload" not in self._settings.flags,
            "mcpCapabilities": {"http": "nohttp" not in self._settings.flags, "sse": False},
            "promptCapabilities": {"image": False, "audio": False, "embeddedContext": False},
        }
        return Answer(
            {
                "protocolVersion": 1,
                "agentCapabilities": capabilities,
                "authMethods": [_LOGIN],
                "agentInfo": {"name": "kandev-mock-agent", "title": "Mock agent", "version": self._version},
            }
        )

    async def _authenticate(self, params: Json) -> Answer:
        if params.get("methodId") != _LOGIN["id"]:
            raise RpcError(INVALID_PARAMS, f"unknown methodId: use {_LOGIN['id']!r}")
        self.switches.login = False
        return Answer({})

    async def _new(self, params: Json) -> Answer:
        cwd = self._cwd(params)
        if self.switches.login:
            raise RpcError(AUTH_REQUIRED, "Authentication required: log in first", {"authMethods": [_LOGIN]})
        session_id = new_id("mock")
        session = self._open(session_id, cwd, memory.create(session_id, cwd, self._settings.home), params)
        await self._connect(session)
        return Answer({"sessionId": session_id, "modes": MODES})

    async def _connect(self, session: Session) -> None:
        if "tools" in self._settings.flags:
            try:
                await session.toolbox.connect()
            except McpFailure as failure:
                raise RpcError(INTERNAL_ERROR, f"tool servers: {failure.message}") from failure

    async def _load(self, params: Json) -> Answer:
        session_id, cwd = str(params.get("sessionId")), self._cwd(params)
        known = memory.load(session_id, cwd, self._settings.home)
        if known is None:
            raise RpcError(
                INVALID_PARAMS, f"no conversation {session_id!r} is known here: start a new session"
            )
        old = self._sessions.get(session_id)
        if old is not None and old.turn is not None:
            raise RpcError(INTERNAL_ERROR, "a turn is already running")
        if old is not None:
            await old.toolbox.close()
        session = self._open(session_id, cwd, known, params)
        await self._connect(session)
        await session.replay(self.connection)
        return Answer({"modes": MODES})

    async def _prompt(self, params: Json) -> Answer:
        session = self._session(params)
        if session.turn is not None:
            raise RpcError(INTERNAL_ERROR, "a turn is already running")
        turn = session.begin()
        stage = Stage(self.connection, session, turn, self.switches)
        text = script.prompt_text(params.get("prompt"))
        session.memory.add(memory.Entry("user", text, new_id("msg")))
        try:
            answer = Answer({"stopReason": await play(stage, script.parse(text))})
        except RpcError as error:
            answer = Answer(error=error)
        finally:
            session.end()
        if turn.echo_after:
            after = replace(stage, turn=Turn())  # no cancel reaches what comes after the end
            answer = replace(answer, afterwards=partial(chunks, after, "after", turn.echo_after, 0))
        return answer

    async def _set_mode(self, params: Json) -> Answer:
        self._session(params)
        if params.get("modeId") not in [mode["id"] for mode in MODES["availableModes"]]:
            raise RpcError(INVALID_PARAMS, f"unknown modeId {params.get('modeId')!r}")
        return Answer({})

    def _open(self, session_id: str, cwd: Path, known: memory.Memory, params: Json) -> Session:
        toolbox = Toolbox(_servers(params), cwd, self._version)
        session = Session(session_id, cwd, known, toolbox)
        self._sessions[session_id] = session
        return session

    def _session(self, params: Json) -> Session:
        session = self._sessions.get(str(params.get("sessionId")))
        if session is None:
            raise RpcError(INVALID_PARAMS, f"unknown sessionId {params.get('sessionId')!r}")
        return session

    @staticmethod
    def _cwd(params: Json) -> Path:
        cwd = params.get("cwd")
        if not isinstance(cwd, str) or not cwd.startswith("/"):
            raise RpcError(INVALID_PARAMS, "cwd must be an absolute path")
        return Path(cwd)


def _servers(params: Json) -> list[dict[str, Any]]:
    servers = params.get("mcpServers")
    if not isinstance(servers, list) or not all(isinstance(server, dict) for server in servers):
        raise RpcError(INVALID_PARAMS, "mcpServers must be a list of objects")
    return servers
