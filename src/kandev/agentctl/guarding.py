"""What stands before every handler: host, token, epoch, size and shape; and how its failures are answered.

Not here: what a request does (`server`).
"""

import hmac
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response

from kandev.agentctl.activity import Activity
from kandev.agentctl.fences import Fences
from kandev.agentctl.refusals import Refused, Unsettled, invalid
from kandev.wire.agentctl import EPOCH_HEADER

log = logging.getLogger(__name__)
T = TypeVar("T")

BODY_MAX_BYTES = 64 * 1024 * 1024
"""A prompt may carry images; nothing carries more."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})


def answer(document: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(document), status, media_type="application/json")


async def read(request: Request, kind: type[T]) -> T:
    """The body as a `kind`. Raises Refused: 400 not JSON or not whole, 413 too long, 422 of another shape."""
    content = bytearray()
    try:
        async for chunk in request.stream():
            content += chunk
            if len(content) > BODY_MAX_BYTES:
                raise invalid(f"A body has at most {BODY_MAX_BYTES} bytes.", 413)
    except ClientDisconnect:
        raise invalid("The client went away before its request was whole.", 400) from None
    try:
        return msgspec.json.decode(bytes(content) or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise invalid(f"The body does not fit: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise invalid("The body is not JSON.", 400) from None


class Guard:
    """`hosts` are the Host names beside loopback that are ours."""

    def __init__(self, token: str, hosts: frozenset[str], fences: Fences, activity: Activity) -> None:
        self._token = token.encode()
        self._hosts = LOOPBACK | hosts
        self._fences = fences
        self._activity = activity

    def check_host(self, connection: HTTPConnection) -> None:
        host = connection.headers.get("host", "")
        name = host[: host.rindex(":")] if ":" in host and not host.endswith("]") else host
        if name.lower() not in self._hosts:
            raise invalid(f"agentctl does not answer to the host {host!r}.", 403)

    def check(self, connection: HTTPConnection, *, acting: bool, epoch: bool = True) -> None:
        """Raises Refused: 403 foreign host, 401 no or wrong token, 412 old epoch."""
        self.check_host(connection)
        scheme, _, token = connection.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.encode(), self._token):
            raise Refused(401, "unauthorized", "This needs agentctl's token as Authorization: Bearer.")
        if epoch:
            self.check_epoch(connection, acting=acting)

    def check_epoch(self, connection: HTTPConnection, *, acting: bool) -> None:
        self._fences.check_epoch(connection.headers.get(EPOCH_HEADER), acting=acting)

    def door(
        self, handler: Callable[[Request], Awaitable[Response]], *, acting: bool = True, epoch: bool = True
    ) -> Callable[[Request], Awaitable[Response]]:
        """`handler` behind all checks; `epoch` False leaves the epoch to the handler."""

        async def guarded(request: Request) -> Response:
            try:
                self.check(request, acting=acting, epoch=epoch)
                with self._activity.of_a_client():
                    return await handler(request)
            except Refused as refused:
                return answer(refused.refusal, refused.status)
            except Unsettled as unsettled:
                return answer({"message": str(unsettled)}, 503)
            except Exception:  # Around a request.
                error_id = uuid.uuid4().hex
                log.exception("request %s failed, error id %s", request.url.path, error_id)
                return answer({"message": f"agentctl made a mistake; its log has it as {error_id}."}, 500)

        return guarded
