"""`kandev agentctl mcp-bridge`: an instance's MCP server for agents that take only programs.

An agent starts it, speaks MCP to it in lines, and it carries each message to agentctl over HTTP: address and
token stand in its environment and nowhere else. It starts quickly (standard library only), knows nothing of
what it carries, and ends with its stdin. Threads, because each call waits in a connection of its own. Not
here: the server (`door`).
"""

import contextlib
import json
import os
import sys
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

URL_VARIABLE = "KANDEV_MCP_URL"
TOKEN_VARIABLE = "KANDEV_MCP_TOKEN"  # noqa: S105 - the name of a variable
COMMAND = " -m kandev agentctl mcp-bridge"
CALLS = 128
"""Under way at once; agentctl allows fewer."""
LINE_MAX_BYTES = 16 * 1024 * 1024
CONNECT_S = 10.0
"""agentctl is on this machine; what it waits for afterwards has its bounds there."""
STDIN, STDOUT = 0, 1


class Bridge:
    """One server of one agent."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._path = parts.hostname or "", parts.port or 80, parts.path
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        self._free = threading.Semaphore(CALLS)
        self._writing = threading.Lock()

    def run(self) -> None:
        """Until stdin ends."""
        with os.fdopen(STDIN, "rb", closefd=False) as lines:
            while line := lines.readline(LINE_MAX_BYTES):
                if not line.endswith(b"\n") and len(line) >= LINE_MAX_BYTES:
                    while (rest := lines.readline(LINE_MAX_BYTES)) and not rest.endswith(b"\n"):
                        pass
                    self._say(_failure(None, f"A line has at most {LINE_MAX_BYTES} bytes; send less."))
                elif line.strip():
                    self._take(line.strip())

    def _take(self, line: bytes) -> None:
        """Written here, so that messages arrive in their order; answers are awaited beside it."""
        message = _read(line)
        asks = message is not None and "method" in message and "id" in message
        if asks:
            self._free.acquire()
        try:
            connection = self._send(line)
        except OSError as error:
            self._fail(message if asks else None, f"Kandev cannot be reached: {error}.")
            if asks:
                self._free.release()
            return
        if asks:
            work = threading.Thread(target=self._carry, args=(connection, message), daemon=True)
            work.start()
        else:
            self._finish(connection, message)

    def _send(self, line: bytes) -> "HTTPConnection":
        from http.client import HTTPConnection

        connection = HTTPConnection(self._host, self._port, timeout=CONNECT_S)
        connection.request("POST", self._path, line, dict(self._headers))
        return connection

    def _finish(self, connection: "HTTPConnection", message: dict[str, Any] | None) -> None:
        """What needs no answer; one that says what is wrong is handed on."""
        from http.client import HTTPException

        try:
            response = connection.getresponse()
            body = response.read()
            if response.status >= 400 and message is None:
                self._say(_line(body))
        except (OSError, HTTPException):
            return  # a notification: nobody waits for what became of it
        finally:
            connection.close()

    def _carry(self, connection: "HTTPConnection", request: dict[str, Any]) -> None:
        from http.client import HTTPException

        try:
            if connection.sock is not None:
                connection.sock.settimeout(None)
            self._pass_on(connection.getresponse(), request)
        except (OSError, HTTPException) as error:
            self._fail(request, f"The connection to Kandev broke: {error!r}.")
        finally:
            connection.close()
            self._free.release()

    def _pass_on(self, response: "HTTPResponse", request: dict[str, Any]) -> None:
        if response.status >= 400:
            self._fail(request, _sentence(response.read()))
            return
        if client := response.getheader("Mcp-Session-Id"):
            self._headers["Mcp-Session-Id"] = client
        if (response.getheader("Content-Type") or "").startswith("text/event-stream"):
            for line in iter(response.readline, b""):
                if line.startswith(b"data:"):
                    self._hand(line[5:].strip(), request)
        elif body := response.read():
            self._hand(_line(body), request)

    def _hand(self, message: bytes, request: dict[str, Any]) -> None:
        if request.get("method") == "initialize":
            result = (_read(message) or {}).get("result")
            if isinstance(result, dict) and isinstance(version := result.get("protocolVersion"), str):
                self._headers["MCP-Protocol-Version"] = version
        self._say(message)

    def _fail(self, request: dict[str, Any] | None, sentence: str) -> None:
        if request is not None:
            self._say(_failure(request, sentence))

    def _say(self, message: bytes) -> None:
        data = memoryview(message + b"\n")
        with self._writing:
            while data:
                data = data[os.write(STDOUT, data) :]


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _line(body: bytes) -> bytes:
    return body.replace(b"\r", b" ").replace(b"\n", b" ")


def _failure(request: dict[str, Any] | None, sentence: str) -> bytes:
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": None if request is None else request["id"]}
    if request is not None and request["method"] == "tools/call":
        content = [{"type": "text", "text": f"[INTERNAL_ERROR] {sentence}"}]
        answer["result"] = {"content": content, "isError": True}
    else:
        answer["error"] = {"code": -32603, "message": sentence}
    return json.dumps(answer).encode()


def _sentence(body: bytes) -> str:
    """Of a refusal, whoever wrote it."""
    said = _read(body) or {}
    error = said.get("error")
    message = error.get("message") if isinstance(error, dict) else said.get("message")
    return str(message or "Kandev refused this without a reason.")


def is_bridge(command: str) -> bool:
    """Whether a process of this command line is one."""
    return command.endswith(COMMAND)


def main() -> int:
    """The exit code: 0 when stdin ended, 1 without an address."""
    url, token = os.environ.get(URL_VARIABLE), os.environ.get(TOKEN_VARIABLE)
    if not url or not token:
        sys.stderr.write("kandev agentctl mcp-bridge: it is started by an agent that Kandev runs.\n")
        return 1
    with contextlib.suppress(OSError):  # the agent does not read: it has gone
        Bridge(url, token).run()
    # Threads that still wait have nobody to answer.
    os._exit(0)
