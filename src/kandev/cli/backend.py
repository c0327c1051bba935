"""The running backend as the command line sees it: where it is, and one call at a time over HTTP.

Found by `--url`, else `KANDEV_URL`, else `backend.json` in the home. Not here: live streams (`stream`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kandev import config
from kandev.cli.failures import Failed, Refused, Unreachable

if TYPE_CHECKING:
    import httpx

START = "start one with `kandev serve`"


@dataclass(frozen=True)
class Place:
    """Where a backend is."""

    url: str
    token: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


@dataclass(frozen=True)
class Finder:
    """How to find the backend; asked anew after each restart, because its address may be another one then."""

    url: str | None
    home: str | None
    environment: Mapping[str, str]

    def find(self) -> Place:
        """Raises Failed with a sentence that says how to start one."""
        token = self.environment.get("KANDEV_TOKEN")
        home = self._home()
        if given := self.url or self.environment.get("KANDEV_URL"):
            if urlsplit(given).scheme not in ("http", "https") or not urlsplit(given).netloc:
                raise Failed(
                    f"The address {given!r} is no http:// or https:// URL; mend --url or KANDEV_URL."
                )
            url = given.rstrip("/")
            noted = read_note(home)
            # The note's token is for its own backend and for nobody else.
            return Place(url, token or (noted.token if noted and noted.url == url else None))
        noted = read_note(home)
        if noted is None:
            raise Unreachable(f"No backend runs in {home}; {START}, or name one with --url.")
        return Place(noted.url, token or noted.token)

    def _home(self) -> Path:
        try:
            return config.home_of(self.home, self.environment)
        except config.BadSetting as error:
            raise Failed(str(error)) from None


def read_note(home: Path) -> Place | None:
    """What `backend.json` says; None when there is none. Raises Failed when it cannot be read."""
    path = home / "backend.json"
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
        return Place(str(note["url"]).rstrip("/"), note.get("token"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failed(f"{path} cannot be read ({error}); start the backend again.") from None


class Backend:
    """Calls of actions. `timeout` in seconds is the deadline of each."""

    def __init__(self, finder: Finder, timeout: float, *, as_json: bool = False) -> None:
        self.finder = finder
        self.timeout = timeout
        self.as_json = as_json
        self._http: httpx.Client | None = None
        self._place: Place | None = None

    @property
    def place(self) -> Place:
        """Where it is, looked up once."""
        self._place = self._place or self.finder.find()
        return self._place

    def call(self, action: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The response payload. Raises Refused (the error object), Unreachable, Failed."""
        import httpx

        path = f"{self.place.url}/api/v1/actions/{action}"
        try:
            answer = self._client().post(path, json=dict(payload or {}))
        except httpx.TimeoutException:
            raise Failed(
                f"The backend did not answer {action} within {self.timeout:g} s; it may still be done. "
                "Look with `kandev session explain`, or allow more with --timeout."
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unreachable(f"No backend answers at {self.place.url} ({error}); {START}.") from None
        return self._read(answer)

    def _client(self) -> "httpx.Client":
        import ssl

        import httpx

        if self._http is None:
            # A proxy is for other machines; nobody's proxy leads to our own loopback.
            parts = urlsplit(self.place.url)
            beyond = not config.is_loopback(parts.hostname or "")
            # Reading the machine's certificates takes longer than the call; without TLS none are needed.
            trust = True if parts.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._http = httpx.Client(
                headers=self.place.headers, timeout=self.timeout, trust_env=beyond, verify=trust
            )
        return self._http

    def _read(self, answer: "httpx.Response") -> dict[str, Any]:
        try:
            body = answer.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise Failed(
                f"What answers at {self.place.url} is no Kandev backend (HTTP {answer.status_code})."
            )
        if answer.status_code == 200:
            return body
        raise Refused(body, as_json=self.as_json)

    def close(self) -> None:
        """Lets the connection go."""
        if self._http is not None:
            self._http.close()
            self._http = None
