"""How a conversation with an ACP agent begins: initialize, authenticate, new or load or resume, model and
mode.

Every failure ends in StartFailed with the agent's own words, or in a warning where the conversation can go on
without. Not here: deadlines (the caller cancels), and the swallowing of replayed history (`adapter`).
"""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kandev.agentctl.adapters.acp.documents import (
    PROTOCOL_VERSION,
    Document,
    clipped,
    initialize,
    mcp_servers,
    objects,
    own_server,
    part,
    text,
    word,
)
from kandev.agentctl.adapters.base import Spec, Started, StartFailed, WriteFailed
from kandev.agentctl.failures import EndedEarly
from kandev.agentctl.rpc import Peer, PeerGone, RpcError

AUTH_REQUIRED = -32000
LONGEST_ID = 4096
"""Characters: it is part of the session's value, which every commit writes."""


class Replay(Protocol):
    """The adapter, which sees the updates that a load repeats."""

    def begin_replay(self) -> None:
        """From now on history is swallowed and counted."""

    def opened(self, answer: Any, session_id: str | None) -> None:
        """Called in wire order: the conversation stands (`session_id` given) or could not be had."""

    async def end_replay(self, *, expected: bool) -> int:
        """Wait until no more history comes (longer for the first piece when it is `expected`); how much
        came."""


@dataclass
class Opening:
    """One start. `option_s`: how long a model or mode that was wished for is waited for, in seconds.
    `environment`: what the agent was started with."""

    peer: Peer
    replay: Replay
    auth_method: str | None
    option_s: float
    environment: Mapping[str, str] = field(default_factory=dict)
    _capabilities: Document = field(default_factory=dict)
    _methods: list[Document] = field(default_factory=list)
    _warnings: list[str] = field(default_factory=list)
    _proven: bool = False

    async def run(self, spec: Spec) -> Started:
        """Raises StartFailed."""
        step = "initialize"
        try:
            hello = await self._initialize(spec)
            step = "opening a conversation"
            session_id, memory, answer = await self._conversation(spec)
            step = "setting model and mode"
            await self._choose(session_id, answer, spec)
        except PeerGone:
            raise EndedEarly(f"The agent ended before it was ready (at {step}).") from None
        except WriteFailed as error:
            raise EndedEarly(f"The agent takes no input (at {step}): {error}") from None
        except RpcError as error:
            raise StartFailed(f"The agent refused {step}: {said(error)}") from None
        return Started(
            resume_token=session_id,
            memory=memory,
            proven=self._proven or not memory,
            resumable=bool(self._ways_back()),
            agent_name=word(hello.get("title")) or word(hello.get("name")),
            agent_version=word(hello.get("version")),
            warnings=tuple(self._warnings),
        )

    async def _initialize(self, spec: Spec) -> Document:
        answer = await self.peer.request("initialize", initialize(spec.withhold))
        if not isinstance(answer, dict):
            raise StartFailed("The agent's answer to initialize is no object: it does not speak ACP.")
        version = answer.get("protocolVersion", PROTOCOL_VERSION)
        if version != PROTOCOL_VERSION:
            spoken = clipped(str(version))
            raise StartFailed(f"The agent speaks version {spoken} of ACP; Kandev speaks {PROTOCOL_VERSION}.")
        self._capabilities = part(answer, "agentCapabilities")
        self._methods = objects(answer.get("authMethods"))
        return part(answer, "agentInfo")

    async def _conversation(self, spec: Spec) -> tuple[str, bool | None, Document]:
        servers = self._servers(spec)
        params: Document = {"cwd": spec.cwd, "mcpServers": servers}
        if spec.resume_token is None:
            return await self._new(params, None)
        for method in self._ways_back():
            answer = await self._take_up(method, spec.resume_token, params)
            if answer is None:
                continue
            self._proven = await self.replay.end_replay(expected=method == "session/load") > 0
            if self._proven or method == "session/resume":
                return spec.resume_token, True, answer
            # Agents load what they do not know without a word, and then do nothing in it.
            self._warnings.append("The agent loaded the conversation, but it is empty.")
        if not self._ways_back():
            self._warnings.append("The agent cannot take up an earlier conversation; this is a new one.")
        return await self._new(params, False)

    def _servers(self, spec: Spec) -> list[Document]:
        """The profile's, and Kandev's own."""
        servers, warnings = mcp_servers(spec.mcp_servers, self._capabilities)
        self._warnings += warnings
        if spec.tools is None:
            return servers
        own, why_not = own_server(spec.tools, self._capabilities, self.environment)
        if own is None:
            self._warnings += [why_not] if why_not else []
            return servers
        others = [server for server in servers if server["name"] != own["name"]]
        if len(others) < len(servers):
            self._warnings.append(
                f"The profile's MCP server {own['name']} was left out: Kandev's own has that name."
            )
        return [*others, own]

    def _ways_back(self) -> list[str]:
        resume = part(self._capabilities, "sessionCapabilities").get("resume")
        load = self._capabilities.get("loadSession") is True
        offered = {"session/resume": resume is not None and resume is not False, "session/load": load}
        return [method for method, there in offered.items() if there]

    async def _take_up(self, method: str, token: str, params: Document) -> Document | None:
        self.replay.begin_replay()
        try:
            answer = await self._open(method, {"sessionId": token, **params}, token)
        except RpcError as error:
            self._warnings.append(
                f"The agent could not take up the earlier conversation ({method}): {said(error)}"
            )
            await self.replay.end_replay(expected=False)
            return None
        return part(answer)

    async def _new(self, params: Document, memory: bool | None) -> tuple[str, bool | None, Document]:
        answer = part(await self._open("session/new", params, None))
        session_id = answer.get("sessionId")
        if not isinstance(session_id, str):
            raise StartFailed("The agent's answer to session/new has no sessionId.")
        if len(session_id) > LONGEST_ID:
            raise StartFailed(f"The agent's sessionId has more than {LONGEST_ID} characters.")
        return session_id, memory, answer

    async def _open(self, method: str, params: Document, session_id: str | None) -> Any:
        try:
            return await self._request_open(method, params, session_id)
        except RpcError as error:
            if error.code != AUTH_REQUIRED:
                raise
            await self._authenticate(error)
        try:
            return await self._request_open(method, params, session_id)
        except RpcError as error:
            if error.code != AUTH_REQUIRED:
                raise
            raise StartFailed(self._demand(error)) from None

    async def _request_open(self, method: str, params: Document, session_id: str | None) -> Any:
        def at_reply(reply: Any) -> None:
            given = session_id or text(part(reply).get("sessionId"))
            failed = isinstance(reply, RpcError | PeerGone)
            self.replay.opened(reply, None if failed else given)

        return await self.peer.request(method, params, at_reply=at_reply)

    async def _authenticate(self, demand: RpcError) -> None:
        if self.auth_method is None:
            raise StartFailed(self._demand(demand))
        try:
            await self.peer.request("authenticate", {"methodId": self.auth_method})
        except RpcError as error:
            raise StartFailed(f"The agent refused the login {self.auth_method!r}: {said(error)}") from None

    def _demand(self, error: RpcError) -> str:
        methods = objects(part(error.data).get("authMethods")) or self._methods
        ways = [
            " – ".join(filter(None, [f"{way.get('name')} ({way.get('id')})", text(way.get("description"))]))
            for way in methods
        ]
        offer = f" It offers: {clipped('; '.join(way.rstrip('. ') for way in ways))}." if ways else ""
        words = clipped(error.message.rstrip(". "))
        return (
            f"The agent demands a login: {words}.{offer} Log in with the agent's own program, "
            "or name one of its methods as the profile's auth_method."
        )

    async def _choose(self, session_id: str, answer: Document, spec: Spec) -> None:
        wishes = (("model", "models", "session/set_model"), ("mode", "modes", "session/set_mode"))
        for (what, listed, method), wish in zip(wishes, (spec.model, spec.mode), strict=True):
            if wish is None:
                continue
            if (request := _choice(what, wish, answer, listed, method)) is None:
                self._warnings.append(f"The agent offers no choice of {what}; {wish!r} was not set.")
                continue
            setting = self.peer.request(request[0], {"sessionId": session_id, **request[1]})
            await self._wish(setting, f"The {what} {wish!r} was not set")

    async def _wish(self, setting: Awaitable[Any], failure: str) -> None:
        try:
            async with asyncio.timeout(self.option_s):
                await setting
        except RpcError as error:
            self._warnings.append(f"{failure}: {said(error)}")
        except TimeoutError:
            self._warnings.append(f"{failure}: the agent did not answer for {self.option_s:g} seconds.")


def _choice(what: str, wish: str, answer: Document, listed: str, method: str) -> tuple[str, Document] | None:
    """The request that sets it. Configuration options come first: ACP prefers them to `modes`, and `models`
    was never more than a draft, which agents offer all the same."""
    for option in objects(answer.get("configOptions")):
        if option.get("category") == what or option.get("id") == what:
            return "session/set_config_option", {"configId": option.get("id"), "value": wish}
    if part(answer, listed):
        return method, {f"{what}Id": wish}
    return None


def said(error: RpcError) -> str:
    """The agent's own words."""
    return f"{clipped(error.message)} ({error.code})"
