"""Command line, then environment, then config.toml, then defaults; a wrong setting is one sentence."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path

import pytest

from kandev import config
from kandev.agentctl import settings as agentctl_settings
from kandev.config import BadSetting, Settings
from kandev.runtime.deadlines import Deadlines


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that does not exist yet."""
    return tmp_path / "home"


def read(
    home: Path,
    flags: dict[str, object] | None = None,
    environment: dict[str, str] | None = None,
    toml: str = "",
) -> Settings:
    """The settings with this home; `toml` is its config file."""
    if toml:
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(toml)
    return config.read({"home": str(home), **(flags or {})}, environment or {})


@pytest.mark.proves("CLI-settings-order")
def test_the_command_line_wins_over_the_environment_over_the_file_over_the_default(home: Path) -> None:
    flags: dict[str, object] = {"port": 1}
    environment = {"KANDEV_PORT": "2", "KANDEV_LOG_LEVEL": "DEBUG"}
    toml = 'port = 3\nlog_level = "error"\nhost = "localhost"\n'

    assert read(home, flags, environment, toml).port == 1
    assert read(home, {"port": None}, environment, toml).port == 2
    assert read(home, {}, {}, toml).port == 3
    (home / "config.toml").unlink()
    assert read(home).port == 38429
    mixed = read(home, flags, environment, toml)
    assert (mixed.port, mixed.log_level, mixed.host) == (1, "debug", "localhost")


@pytest.mark.proves("CLI-settings-order")
def test_without_any_setting_it_is_loopback_and_a_database_in_the_home(home: Path) -> None:
    assert read(home) == Settings(home=home, database_url=f"sqlite:///{home}/kandev.db")
    assert read(home).database_file == home / "kandev.db"
    assert not read(home).beyond_loopback
    assert home.stat().st_mode & 0o777 == 0o700


def test_the_home_is_named_by_command_line_environment_or_default(tmp_path: Path) -> None:
    environment = {"KANDEV_HOME": str(tmp_path / "e")}

    assert config.home_of(str(tmp_path / "f"), environment) == tmp_path / "f"
    assert config.home_of(None, environment) == tmp_path / "e"
    assert config.home_of(None, {}) == Path.home() / ".kandev"
    assert config.read({}, environment).home == tmp_path / "e"


@pytest.mark.parametrize("name", config.BACKEND_TIMES)
def test_every_time_constant_of_turn_control_is_a_setting(home: Path, name: str) -> None:
    by_environment = read(home, {}, {f"KANDEV_{name.upper()}": "5.25"}).deadlines
    by_file = read(home, {}, {}, f"{name} = 7\n").deadlines

    assert asdict(by_environment) == asdict(Deadlines()) | {name: 5.25}
    assert asdict(by_file) == asdict(Deadlines()) | {name: 7.0}


def test_the_queues_limit_is_a_setting_and_may_be_none(home: Path) -> None:
    assert read(home).deadlines.queue_max == 10
    assert read(home, {}, {"KANDEV_QUEUE_MAX_PER_SESSION": "0"}).deadlines.queue_max == 0


def test_every_setting_of_agentctl_can_be_passed_on(home: Path) -> None:
    numbers = {f.name for f in fields(agentctl_settings.Settings)}
    assert set(config.PASSED_ON) == numbers

    environment = {f"KANDEV_{name.upper()}": "3" for name in numbers}
    passed = read(home, {}, environment).agentctl
    told = agentctl_settings.from_environment(passed)
    assert {getattr(told, name) for name in numbers} == {3}


def test_a_key_that_both_sides_have_reaches_both_and_can_be_told_apart(home: Path) -> None:
    both = read(home, {}, {"KANDEV_CANCEL_ACKNOWLEDGE_S": "2"})
    assert both.deadlines.cancel_acknowledge_s == 2.0
    assert both.agentctl == {"KANDEV_AGENTCTL_CANCEL_ACKNOWLEDGE_S": "2.0"}

    apart = read(home, {}, {"KANDEV_LAUNCH_S": "2", "KANDEV_AGENTCTL_LAUNCH_S": "1"})
    assert (apart.deadlines.launch_s, apart.agentctl) == (2.0, {"KANDEV_AGENTCTL_LAUNCH_S": "1.0"})
    assert read(home).agentctl == {}


@pytest.mark.parametrize(
    ("host", "beyond"),
    [
        ("127.0.0.1", False),
        ("::1", False),
        ("localhost", False),
        ("127.8.8.8", False),
        ("0.0.0.0", True),
        ("::", True),
        ("192.0.2.1", True),
        ("my.machine", True),
    ],
)
def test_only_loopback_needs_no_token(home: Path, host: str, beyond: bool) -> None:
    assert read(home, {"host": host}).beyond_loopback is beyond


WRONG = [
    ({"port": 70000}, {}, "", "--port must be between 0 and 65535, not 70000."),
    ({}, {"KANDEV_PORT": "-1"}, "", "KANDEV_PORT must be a whole number, 0 or more, not '-1'."),
    ({}, {"KANDEV_PORT": "http"}, "", "KANDEV_PORT must be a number, not 'http'."),
    ({}, {"KANDEV_PORT": "80.5"}, "", "KANDEV_PORT must be a whole number"),
    ({}, {}, "port = true\n", "port in {home}/config.toml must be a number, not True."),
    ({}, {}, "prot = 1\n", "{home}/config.toml has an unknown key 'prot'; did you mean 'port'?"),
    ({}, {}, "zzzz = 1\n", "{home}/config.toml has an unknown key 'zzzz'; the keys are host, port,"),
    ({}, {}, "port = \n", "{home}/config.toml cannot be read: "),
    ({}, {}, "host = 7\n", "host in {home}/config.toml must be a text, not 7."),
    ({}, {"KANDEV_LAUNCH_S": "soon"}, "", "KANDEV_LAUNCH_S must be a number, not 'soon'."),
    ({}, {"KANDEV_LAUNCH_S": "-1"}, "", "KANDEV_LAUNCH_S must not be negative"),
    ({}, {"KANDEV_LAUNCH_S": "0"}, "", "KANDEV_LAUNCH_S must be more than 0"),
    ({}, {"KANDEV_SWEEP_S": "nan"}, "", "KANDEV_SWEEP_S must be a finite number"),
    ({}, {"KANDEV_TEARDOWN_TERM_S": "-2"}, "", "KANDEV_TEARDOWN_TERM_S must not be negative"),
    ({}, {"KANDEV_QUEUE_MAX_PER_SESSION": "-1"}, "", "KANDEV_QUEUE_MAX_PER_SESSION must be a whole number"),
    ({}, {"KANDEV_LOG_LEVEL": "loud"}, "", "KANDEV_LOG_LEVEL must be one of debug, info,"),
    ({}, {}, "browser = 7\n", "browser in {home}/config.toml must be true or false, not 7."),
    ({"database_url": "mysql://u:pw@h/d"}, {}, "", "--database-url must look like sqlite:///"),
    ({"database_url": "sqlite://"}, {}, "", "--database-url must look like sqlite:///"),
]


@pytest.mark.proves("CLI-wrong-setting")
@pytest.mark.parametrize(("flags", "environment", "toml", "sentence"), WRONG)
def test_a_wrong_setting_is_one_sentence_that_names_the_key(
    home: Path, flags: dict[str, object], environment: dict[str, str], toml: str, sentence: str
) -> None:
    with pytest.raises(BadSetting) as caught:
        read(home, flags, environment, toml)

    said = str(caught.value)
    assert said.startswith(sentence.format(home=home))
    assert "pw" not in said


@pytest.mark.proves("CLI-postgresql")
def test_a_postgresql_url_is_refused_in_one_sentence(home: Path) -> None:
    with pytest.raises(
        BadSetting, match=r"^KANDEV_DATABASE_URL: PostgreSQL is not built yet; .*\.$"
    ) as caught:
        read(home, {}, {"KANDEV_DATABASE_URL": "postgresql+psycopg://me:secret@localhost/kandev"})
    assert "secret" not in str(caught.value)


@pytest.mark.proves("BAD-home-unwritable")
def test_a_home_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    a_file = tmp_path / "file"
    a_file.write_text("")

    with pytest.raises(BadSetting, match=f"^home: {a_file} is not a folder; choose another one with --home"):
        read(a_file)
    with pytest.raises(BadSetting, match=f"^home: {a_file}/inside cannot be made"):
        read(a_file / "inside")
    # Not even root may write below /proc.
    with pytest.raises(BadSetting, match=r"^home: /proc/kandev cannot be made"):
        read(Path("/proc/kandev"))
    with pytest.raises(BadSetting, match=r"^home: /proc/1/task cannot be written"):
        read(Path("/proc/1/task"))


def test_further_host_names_are_given_with_commas(tmp_path: Path) -> None:
    settings = config.read({"home": str(tmp_path)}, {"KANDEV_HOSTS": "Kandev.example, box"})
    assert settings.hosts == ("kandev.example", "box")


def test_the_wait_for_an_end_is_longer_than_the_steps_of_it(tmp_path: Path) -> None:
    derived = config.read({"home": str(tmp_path)}, {"KANDEV_TEARDOWN_TERM_S": "20"})
    assert derived.deadlines.teardown_s > 20
    with pytest.raises(BadSetting, match=r"KANDEV_TEARDOWN_S must be more than the 4\.5 s"):
        config.read({"home": str(tmp_path)}, {"KANDEV_TEARDOWN_S": "3"})


def test_the_steps_of_an_end_are_counted_with_agentctls_own_defaults() -> None:
    own = agentctl_settings.Settings()
    steps = (own.teardown_protocol_s, own.teardown_stdin_s, own.teardown_term_s, own.teardown_kill_s)
    assert sum(steps) == sum(config.LADDER.values())
