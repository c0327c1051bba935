"""`fs/read_text_file` and `fs/write_text_file`: text files inside the worktree, nothing else.

The agent could do all this by itself; the bounds keep a confused one from reaching through us into other
places, and from holding us up with pipes and devices. Source: ACP schema, `ReadTextFileRequest`,
`WriteTextFileRequest`.
"""

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from kandev.agentctl.adapters.acp.documents import Document
from kandev.agentctl.rpc import INTERNAL_ERROR, INVALID_PARAMS, RpcError

NOT_FOUND = -32002
"""ACP's code for a resource that does not exist."""
OPENING = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Never through a link that was just put there, never waiting for the other end of a pipe."""

T = TypeVar("T")


class Files:
    """`root` is the worktree; `max_bytes` bounds a file; `deadline_s` bounds each piece of work."""

    def __init__(self, root: str, max_bytes: int, deadline_s: float) -> None:
        self._root = Path(root)
        self._max_bytes = max_bytes
        self._deadline_s = deadline_s

    async def read(self, params: Document) -> Document:
        """ACP's answer. Raises RpcError with one sentence."""
        path, line, limit = params.get("path"), _number(params, "line"), _number(params, "limit")
        content = await self._work(path, lambda: self._read(path))
        if line is not None or limit is not None:
            begin = max((line or 1) - 1, 0)
            content = "".join(_lines(content)[begin : None if limit is None else begin + limit])
        return {"content": content}

    async def write(self, params: Document) -> Document:
        """ACP's answer. Makes the folders on the way. Raises RpcError with one sentence."""
        path, content = params.get("path"), params.get("content")
        if not isinstance(content, str):
            raise RpcError(INVALID_PARAMS, "The content to write must be text.")
        data = content.encode(errors="replace")
        if len(data) > self._max_bytes:
            raise RpcError(INVALID_PARAMS, f"{path} would be larger than {self._max_bytes} bytes.")
        await self._work(path, lambda: self._write(path, data))
        return {}

    def inside(self, path: object) -> Path:
        """The file or folder that is meant, links followed. Raises RpcError when it lies outside the
        worktree."""
        if not isinstance(path, str) or "\0" in path or not path.startswith("/"):
            raise RpcError(INVALID_PARAMS, f"The path must be absolute, not {path!r}.")
        if ".." in Path(path).parts:
            raise RpcError(INVALID_PARAMS, f"The path {path} must not contain '..'.")
        target = Path(path).resolve()
        if not target.is_relative_to(self._root.resolve()):
            raise RpcError(INVALID_PARAMS, f"{path} is outside the worktree {self._root}.")
        return target

    async def _work(self, path: object, work: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(self._deadline_s):
                return await asyncio.to_thread(work)
        except FileNotFoundError:
            raise RpcError(NOT_FOUND, f"{path} does not exist.") from None
        except TimeoutError:
            raise RpcError(INTERNAL_ERROR, f"{path} could not be used within the time allowed.") from None
        except UnicodeDecodeError:
            raise RpcError(INVALID_PARAMS, f"{path} is not UTF-8 text.") from None
        except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
            reason = getattr(error, "strerror", None) or error
            raise RpcError(INTERNAL_ERROR, f"{path} cannot be used: {reason}.") from None

    def _read(self, path: object) -> str:
        fd = self._open(path, os.O_RDONLY)
        with os.fdopen(fd, "rb") as file:
            data = file.read(self._max_bytes + 1)
        if len(data) > self._max_bytes:
            raise RpcError(INVALID_PARAMS, f"{path} is larger than {self._max_bytes} bytes.")
        return data.decode()

    def _write(self, path: object, data: bytes) -> None:
        self.inside(path).parent.mkdir(parents=True, exist_ok=True)
        fd = self._open(path, os.O_WRONLY | os.O_CREAT)
        with os.fdopen(fd, "wb") as file:
            file.truncate(0)
            file.write(data)

    def _open(self, path: object, flags: int) -> int:
        target = self.inside(path)
        fd = os.open(target, flags | OPENING, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise RpcError(INVALID_PARAMS, f"{path} is not a regular file.")
            # A folder on the way may have become a link after the check: what was opened decides.
            if not Path(f"/proc/self/fd/{fd}").readlink().is_relative_to(self._root.resolve()):
                raise RpcError(INVALID_PARAMS, f"{path} is outside the worktree {self._root}.")
        except BaseException:
            os.close(fd)
            raise
        return fd


def _number(params: Document, name: str) -> int | None:
    value = params.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise RpcError(INVALID_PARAMS, f"The parameter {name} must be a whole number from 0 on.")
    return value


def _lines(content: str) -> list[str]:
    pieces = content.split("\n")
    return [f"{piece}\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])
