"""The settings: one frozen value, read once: command line, then environment, `config.toml`, defaults.

A key is called `port` on the command line and in the file, and `KANDEV_PORT` in the environment. Every time
constant of turn control is a key too. Not here: agentctl's own reading of what is passed on to it.
"""

import ipaddress
import math
import os
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from kandev.runtime.deadlines import Deadlines

HOST = "127.0.0.1"
PORT = 38429
PORT_MAX = 65535
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
HOME_MODE = 0o700
"""Transcripts, tokens and work in progress are nobody else's business."""

QUEUE_MAX = "queue_max_per_session"
BACKEND_TIMES = tuple(f.name for f in fields(Deadlines) if f.name != "queue_max")
AGENTCTL_TIMES = (
    "launch_s",
    "write_s",
    "cancel_acknowledge_s",
    "cancel_repeat_s",
    "cancel_settle_s",
    "late_output_s",
    "own_turn_silent_s",
    "teardown_protocol_s",
    "teardown_stdin_s",
    "teardown_term_s",
    "teardown_kill_s",
    "survivors_again_s",
    "orphan_s",
    "mcp_hold_s",
)
AGENTCTL_SIZES = (
    "line_max_bytes",
    "window_frames",
    "window_bytes",
    "journal_max_bytes",
    "stderr_tail_lines",
    "mcp_calls",
    "mcp_message_bytes",
    "mcp_held_bytes",
)
"""Whole numbers."""
LADDER = {"protocol": 0.5, "stdin": 1.0, "term": 2.0, "kill": 1.0}
"""agentctl's defaults for the steps of ending an agent, in seconds."""
PASSED_ON = (*AGENTCTL_TIMES, *AGENTCTL_SIZES)
"""agentctl's keys. `KANDEV_LAUNCH_S` is for both sides, `KANDEV_AGENTCTL_LAUNCH_S` for agentctl alone."""


class BadSetting(ValueError):
    """One sentence that names the key and the fix."""


@dataclass(frozen=True)
class Settings:
    """How this backend runs. `home` exists and can be written."""

    home: Path
    database_url: str
    host: str = HOST
    port: int = PORT
    """0 picks a free one."""
    log_level: str = "info"
    hosts: tuple[str, ...] = ()
    """Further names that browsers call it by (a proxy's, the machine's)."""
    token: str | None = None
    """What clients must show; None: nothing on loopback, a generated one beyond it."""
    browser: bool = True
    otlp_endpoint: str | None = None
    """Base URL of an OpenTelemetry collector that takes traces over HTTP."""
    stop_agents: bool = False
    """The backend's end ends running turns too."""
    deadlines: Deadlines = field(default_factory=Deadlines)
    agentctl: Mapping[str, str] = field(default_factory=dict)
    """Environment of agentctl: its settings as far as they were given, `KANDEV_AGENTCTL_…`."""

    @property
    def database_file(self) -> Path:
        """The file of the SQLite database."""
        return Path(unquote(urlsplit(self.database_url).path).removeprefix("/"))

    @property
    def beyond_loopback(self) -> bool:
        """Whether other machines can reach the address: then a token is demanded."""
        return not is_loopback(self.host)


@dataclass(frozen=True)
class _Given:
    """A value and the name under which it was given, for the sentence."""

    value: object
    name: str


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def home_of(flag: str | None, environment: Mapping[str, str]) -> Path:
    """Where the home is, made or not. Raises BadSetting."""
    chosen = flag or environment.get("KANDEV_HOME") or "~/.kandev"
    try:
        return Path(chosen).expanduser().absolute()
    except RuntimeError:
        raise BadSetting(f"KANDEV_HOME: the folder of {chosen} is not known; name the whole path.") from None


def read(
    flags: Mapping[str, object], environment: Mapping[str, str] = os.environ, *, make_home: bool = True
) -> Settings:
    """The settings; `flags` are None where not given. Raises BadSetting.

    The home is made and tried, unless `make_home` is False: then nothing is touched.
    """
    flag = flags.get("home")
    home = home_of(str(flag) if flag else None, environment)
    if make_home:
        _make_usable(home)
    given = _from_file(home / "config.toml") | _from_environment(environment)
    given |= {k: _Given(v, f"--{k.replace('_', '-')}") for k, v in flags.items() if v is not None}
    url = _read(given, "database_url", _database_url, "") or f"sqlite:///{home / 'kandev.db'}"
    return Settings(
        home=home,
        database_url=url,
        host=_read(given, "host", _text, HOST),
        port=_read(given, "port", _port, PORT),
        log_level=_read(given, "log_level", _log_level, "info"),
        hosts=_read(given, "hosts", _names, ()),
        token=_read(given, "token", _text, None),
        browser=_read(given, "browser", _switch, True),
        otlp_endpoint=_read(given, "otlp_endpoint", _http_url, None),
        stop_agents=_read(given, "stop_agents", _switch, False),
        deadlines=_deadlines(given),
        agentctl=_for_agentctl(given),
    )


def _make_usable(home: Path) -> None:
    fix = "choose another one with --home or KANDEV_HOME"
    try:
        if home.exists() and not home.is_dir():
            raise BadSetting(f"home: {home} is not a folder; {fix}.")
        home.mkdir(mode=HOME_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise BadSetting(f"home: {home} cannot be made ({error.strerror}); {fix}.") from None
    try:
        # Only a write tells: permissions say nothing about a read-only disk, or to root.
        with tempfile.TemporaryFile(dir=home):
            pass
    except OSError as error:
        raise BadSetting(f"home: {home} cannot be written ({error.strerror}); {fix}.") from None


def _known_keys() -> tuple[str, ...]:
    plain = (
        "host",
        "port",
        "hosts",
        "database_url",
        "log_level",
        "token",
        "browser",
        "otlp_endpoint",
        "stop_agents",
        QUEUE_MAX,
    )
    return (*plain, *BACKEND_TIMES, *PASSED_ON, *(f"agentctl_{name}" for name in PASSED_ON))


def _from_file(path: Path) -> dict[str, _Given]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSetting(f"{path} cannot be read: {error}; mend it or move it away.") from None
    known = _known_keys()
    for key in document:
        if key not in known:
            near = get_close_matches(key, known, 1)
            fix = f"did you mean {near[0]!r}?" if near else f"the keys are {', '.join(known[:8])}, …"
            raise BadSetting(f"{path} has an unknown key {key!r}; {fix}")
    return {key: _Given(value, f"{key} in {path}") for key, value in document.items()}


def _from_environment(environment: Mapping[str, str]) -> dict[str, _Given]:
    names = {key: f"KANDEV_{key.upper()}" for key in _known_keys()}
    return {key: _Given(environment[name], name) for key, name in names.items() if environment.get(name)}


def _read(given: Mapping[str, _Given], key: str, meaning: Callable[[_Given], Any], default: Any) -> Any:
    return meaning(given[key]) if key in given else default


def _deadlines(given: Mapping[str, _Given]) -> Deadlines:
    times = {n: _seconds(given[n], zero=n == "idle_sleep_s") for n in BACKEND_TIMES if n in given}
    deadlines = _above_the_ladder(given, Deadlines(**times))  # type: ignore[arg-type]
    return replace(deadlines, queue_max=_whole(given[QUEUE_MAX])) if QUEUE_MAX in given else deadlines


def _above_the_ladder(given: Mapping[str, _Given], deadlines: Deadlines) -> Deadlines:
    """agentctl's whole ladder fits into the backend's wait for it: else each stubborn end counts as lost."""
    ladder = 0.0
    for step, default in LADDER.items():
        name = f"teardown_{step}_s"
        chosen = given.get(f"agentctl_{name}") or given.get(name)
        ladder += default if chosen is None else _seconds(chosen, zero=True)
    if deadlines.teardown_s > ladder:
        return deadlines
    if "teardown_s" in given:
        raise BadSetting(
            f"{given['teardown_s'].name} must be more than the {ladder:g} s that agentctl's own steps take "
            "(teardown_protocol_s, _stdin_s, _term_s and _kill_s)."
        )
    return replace(deadlines, teardown_s=2 * ladder)


def _for_agentctl(given: Mapping[str, _Given]) -> dict[str, str]:
    passed: dict[str, str] = {}
    for name in PASSED_ON:
        chosen = given.get(f"agentctl_{name}") or given.get(name)
        if chosen is not None:
            number = _whole(chosen) if name in AGENTCTL_SIZES else _seconds(chosen, zero=True)
            passed[f"KANDEV_AGENTCTL_{name.upper()}"] = str(number)
    return passed


def _text(given: _Given) -> str:
    if not isinstance(given.value, str) or not given.value.strip():
        raise BadSetting(f"{given.name} must be a text, not {given.value!r}.")
    return given.value.strip()


def _names(given: _Given) -> tuple[str, ...]:
    value = given.value.split(",") if isinstance(given.value, str) else given.value
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise BadSetting(f"{given.name} must be names with commas between them, not {given.value!r}.")
    return tuple(name.strip().lower() for name in value if name.strip())


def _switch(given: _Given) -> bool:
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    value = given.value if isinstance(given.value, bool) else words.get(str(given.value).lower())
    if value is None:
        raise BadSetting(f"{given.name} must be true or false, not {given.value!r}.")
    return value


def _log_level(given: _Given) -> str:
    level = str(given.value).lower()
    if level not in LOG_LEVELS:
        raise BadSetting(f"{given.name} must be one of {', '.join(LOG_LEVELS)}, not {given.value!r}.")
    return level


def _number(given: _Given) -> float:
    try:
        if isinstance(given.value, bool):
            raise ValueError
        number = float(str(given.value))
    except ValueError:
        raise BadSetting(f"{given.name} must be a number, not {given.value!r}.") from None
    if not math.isfinite(number):
        raise BadSetting(f"{given.name} must be a finite number, not {given.value!r}.")
    return number


def _seconds(given: _Given, *, zero: bool) -> float:
    number = _number(given)
    if number < 0:
        raise BadSetting(f"{given.name} must not be negative; it is a number of seconds.")
    if number == 0 and not zero:
        raise BadSetting(f"{given.name} must be more than 0; it is a number of seconds.")
    return number


def _whole(given: _Given) -> int:
    number = _number(given)
    if number < 0 or number != int(number):
        raise BadSetting(f"{given.name} must be a whole number, 0 or more, not {given.value!r}.")
    return int(number)


def _port(given: _Given) -> int:
    port = _whole(given)
    if port > PORT_MAX:
        raise BadSetting(f"{given.name} must be between 0 and {PORT_MAX}, not {given.value!r}.")
    return port


def _database_url(given: _Given) -> str:
    url = _text(given)
    scheme = url.partition(":")[0].lower()
    if scheme.startswith("postgres"):
        raise BadSetting(
            f"{given.name}: PostgreSQL is not built yet; leave it out or name a file, sqlite:////folder/kandev.db."
        )
    if scheme != "sqlite" or not url.startswith("sqlite:////") or url.endswith("/"):
        raise BadSetting(
            f"{given.name} must look like sqlite:////folder/kandev.db, not {_without_secret(url)}."
        )
    return url


def _http_url(given: _Given) -> str:
    url = _text(given)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadSetting(f"{given.name} must look like http://127.0.0.1:4318, not {_without_secret(url)}.")
    return url


def _without_secret(url: str) -> str:
    """A URL for a message: what stands before an @ may be a password."""
    before, at, after = url.rpartition("@")
    return f"{before.partition(':')[0]}:…@{after}" if at else url
