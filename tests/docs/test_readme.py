"""Commands that the pages tell people to type exist, with the options that they are given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kandev.cli.program import kandev
from tests.docs.pages import ROOT, markdown_files

TYPED = [p for p in markdown_files() if "decisions" not in p.parts and p.name != "cli.md"]
NAMES = [str(path.relative_to(ROOT)) for path in TYPED]
FOREIGN = ("agentctl", "mock-agent")
SCRIPT = re.compile(r"\b(script/[a-z]+)\b")


def typed(text: str) -> Iterator[str]:
    """Every `kandev …` in a page: in backticks, and at the beginning of a line in a block."""
    blocks = re.findall(r"```(?:sh|console)\n(.*?)```", text, re.DOTALL)
    for block in blocks:
        yield from re.findall(r"^(?:\$ )?(kandev(?: .*)?)$", block, re.MULTILINE)
    yield from re.findall(r"`(kandev [^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def wrong(line: str) -> str | None:
    """What is wrong with a command that a page shows; None when it exists so."""
    try:
        words = shlex.split(line)
    except ValueError:  # a text that goes on in the next line
        words = shlex.split(line.partition("'")[0])
    rest, found = words[1:], kandev.get_command(click.Context(kandev), "serve")
    group: click.Command | None = kandev
    while rest and isinstance(group, click.Group) and not rest[0].startswith("-"):
        group = group.get_command(click.Context(group), rest[0])
        if group is None:
            return f"there is no command {' '.join(words[: words.index(rest[0]) + 1])!r}"
        rest = rest[1:]
        found = group
    if len(words) > 1 and words[1] in FOREIGN:
        return None
    known = {name for p in (found.params if found else []) for name in (*p.opts, *p.secondary_opts)}
    known |= {name for p in kandev.params for name in p.opts} | {"--help", "-h"}
    given = [w.strip("[]").partition("=")[0] for w in rest[: rest.index("--") if "--" in rest else None]]
    unknown = [w for w in given if re.fullmatch(r"--?[a-z][a-z-]*", w) and w not in known]
    return f"{line!r} has no option {unknown[0]}" if unknown else None


@pytest.mark.parametrize("page", NAMES)
def test_the_commands_of_a_page_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [sentence for line in typed(text) if (sentence := wrong(line))] == []


def test_the_readme_shows_the_main_job() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = {tuple(line.split()[1:3]) for line in typed(text)}
    assert {("task", "create"), ("message", "send"), ("session", "diff")} <= shown
    assert {words[0] for words in shown if words} >= {"tail", "cancel", "stop", "doctor"}


@pytest.mark.parametrize("page", NAMES)
def test_the_scripts_and_recipes_of_a_page_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    scripts = [name for name in SCRIPT.findall(text) if not (ROOT / name).exists()]
    recipes = re.findall(r"^([a-z_]+)(?: .*)?:", (ROOT / "justfile").read_text(), re.MULTILINE)
    unknown = [name for name in re.findall(r"`just ([a-z]+)", text) if name not in recipes]
    assert (scripts, unknown) == ([], [])


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("kandev nonsense", "there is no command 'kandev nonsense'"),
        ("kandev task nonsense x", "there is no command 'kandev task nonsense'"),
        ("kandev cancel x --nonsense", "'kandev cancel x --nonsense' has no option --nonsense"),
        ("kandev cancel x --json", None),
        ("kandev --port 0", None),
        ("kandev profile create A -- /a --acp", None),
    ],
)
def test_what_does_not_exist_is_found(line: str, sentence: str | None) -> None:
    assert wrong(line) == sentence
    assert Path(ROOT / "README.md").exists()
