"""Requests to one agentctl: what it says, and what it could not be asked, never mixed.

A refusal is a 4xx with a `wire.Refusal` body and raises `Said`; an unknown instance raises
`UnknownExecution`; everything else that is no answer raises `Unreachable`. Not here: finding agentctl
(`sidecar`), the stream (`following`).
"""

import asyncio
from typing import Any, TypeVar

import httpx
import msgspec
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from kandev.ports.execution import UnknownExecution, Unreachable
from kandev.wire import agentctl as wire

T = TypeVar("T")

tracer = trace.get_tracer("kandev.execution")


class Said(Exception):
    """agentctl refused in words."""

    def __init__(self, refusal: wire.Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class NoConnection(Unreachable):
    """The request certainly did not reach agentctl: nobody listens there."""


KEPT_S = 15.0
"""How long an idle connection is used again: well below the time after which agentctl closes it. A request
that meets the close is lost, and nobody can tell whether it arrived."""


class Client:
    """Deadlines in seconds, each for the whole call."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.epoch = 0
        self._token = token
        self._calls = 0
        self._retired = False
        self._http = httpx.AsyncClient(
            base_url=url,
            timeout=None,  # noqa: S113 - each call has its own deadline, for the whole of it
            trust_env=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=KEPT_S),
        )

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}", wire.EPOCH_HEADER: str(self.epoch)}

    async def close(self) -> None:
        await self._http.aclose()

    async def retire(self) -> None:
        """Its agentctl is gone: close, when the calls under way have ended by themselves."""
        self._retired = True
        if not self._calls:
            await self.close()

    async def health(self, deadline: float) -> wire.Health:
        return await self._ask("GET", "/health", wire.Health, deadline)

    async def create(self, asked: wire.CreateInstance, deadline: float) -> wire.Instance:
        return await self._ask("POST", "/api/v1/instances", wire.Instance, deadline, asked)

    async def instances(self, deadline: float) -> list[wire.Instance]:
        return (await self._ask("GET", "/api/v1/instances", wire.Instances, deadline)).instances

    async def delete(self, execution: str, deadline: float) -> wire.Stopped:
        return await self._ask("DELETE", f"/api/v1/instances/{execution}", wire.Stopped, deadline)

    async def stop(self, execution: str, asked: wire.StopInstance, deadline: float) -> wire.Stopped:
        return await self._ask("POST", _path(execution, "stop"), wire.Stopped, deadline, asked)

    async def sleep(self, execution: str, asked: wire.Sleep, deadline: float) -> wire.Stopped:
        return await self._ask("POST", _path(execution, "sleep"), wire.Stopped, deadline, asked)

    async def prompt(self, execution: str, asked: wire.Prompt, deadline: float) -> wire.PromptAccepted:
        return await self._ask("POST", _path(execution, "acp/prompt"), wire.PromptAccepted, deadline, asked)

    async def dispatch(
        self, execution: str, dispatch_id: str, generation: int, deadline: float
    ) -> wire.DispatchState:
        path = _path(execution, f"acp/dispatch/{dispatch_id}?prompt_generation={generation}")
        return await self._ask("GET", path, wire.DispatchState, deadline)

    async def cancel(self, execution: str, asked: wire.Cancel, deadline: float) -> wire.CancelAnswer:
        return await self._ask("POST", _path(execution, "acp/cancel"), wire.CancelAnswer, deadline, asked)

    async def answer_permission(
        self, execution: str, request: str, asked: wire.AnswerPermission, deadline: float
    ) -> None:
        await self._ask("POST", _path(execution, f"acp/permissions/{request}"), dict, deadline, asked)

    async def _ask(
        self, method: str, path: str, kind: type[T], deadline: float, asked: wire.Document | None = None
    ) -> T:
        with tracer.start_as_current_span(
            f"agentctl {method}", kind=SpanKind.CLIENT, attributes={"url.path": path.partition("?")[0]}
        ) as span:
            response = await self._answered(method, path, deadline, asked)
            span.set_attribute("http.response.status_code", response.status_code)
            return _read(response, kind)

    async def _answered(
        self, method: str, path: str, deadline: float, asked: wire.Document | None
    ) -> httpx.Response:
        content = None if asked is None else msgspec.json.encode(asked)
        self._calls += 1
        try:
            async with asyncio.timeout(deadline):
                return await self._http.request(method, path, content=content, headers=self.headers())
        except httpx.ConnectError as error:
            raise NoConnection(f"Nobody listens at {self.url}: {error}") from error
        except TimeoutError as error:
            raise Unreachable(f"agentctl did not answer within {deadline:g} s.") from error
        except (httpx.HTTPError, OSError) as error:
            raise Unreachable(f"The connection to agentctl broke: {error!r}.") from error
        finally:
            self._calls -= 1
            if self._retired and not self._calls:
                await self.close()


def _read(response: httpx.Response, kind: type[T]) -> T:
    try:
        if response.is_success:
            return msgspec.json.decode(response.content, type=kind)
        if response.is_client_error:
            refuse(response.content)
    except msgspec.DecodeError as error:
        raise Unreachable(f"agentctl answered something else: {error}.") from error
    raise Unreachable(f"agentctl answered with status {response.status_code}: {_sentence(response.content)}")


def refuse(body: bytes) -> None:
    """Raises what the refusal in `body` means; msgspec.DecodeError when there is none in it."""
    refusal = msgspec.json.decode(body, type=wire.Refusal)
    if refusal.reason == "unknown_instance":
        raise UnknownExecution(refusal.message)
    if refusal.reason == "unauthorized":
        raise Unreachable("The agentctl at this address belongs to somebody else.")
    raise Said(refusal)


def _sentence(body: bytes) -> str:
    try:
        said: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        return "no reason given."
    return str(said.get("message", "no reason given."))


def _path(execution: str, rest: str) -> str:
    return f"/instances/{execution}/api/v1/{rest}"
