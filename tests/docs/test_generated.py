"""The generated parts of the pages are what the program says today, and their lists lack nothing."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from kandev import config
from kandev.agentctl import settings as agentctl_settings
from kandev.gateway.catalogue import ACTIONS
from kandev.runtime import deadlines
from tests.docs import generated
from tests.docs.pages import made_part, public, with_part


@pytest.mark.parametrize(("page", "part"), generated.PARTS)
def test_the_page_says_what_the_program_says(page: str, part: str) -> None:
    made = generated.PARTS[page, part]().strip()
    assert made_part(public(page), part).strip() == made, (
        f"docs/public/{page} is behind the program; run python -m tests.docs.generated and read what changed."
    )


def test_the_actions_of_the_page_are_those_of_the_catalogue() -> None:
    listed = re.findall(
        r"^\| `([a-z_.]+)` \|", made_part(public("websocket-api.md"), "actions"), re.MULTILINE
    )
    assert sorted(listed) == sorted(ACTIONS)


def test_every_command_and_each_of_its_options_stands_on_the_page() -> None:
    page = public("cli.md")
    missing = [
        f"kandev {' '.join(path)} {name}"
        for path in generated.command_paths()
        for name in ("", *(n for o in generated.options_of(generated.command(path)) for n in o.opts))
        if (name and f"`{name}`" not in page) or f"kandev {' '.join(path)}" not in page
    ]
    assert missing == []


def test_every_setting_says_what_it_is() -> None:
    for module, name in ((deadlines, "Deadlines"), (agentctl_settings, "Settings")):
        silent = [key for key, said in generated.said_beside(module, name).items() if not said]
        assert silent == [], f"{module.__name__} says nothing about these."


def test_every_plain_setting_stands_on_the_page() -> None:
    page = public("configuration.md")
    counted = {*config.BACKEND_TIMES, *config.PASSED_ON, config.QUEUE_MAX, "deadlines", "agentctl"}
    plain = [f.name for f in fields(config.Settings) if f.name not in counted]
    assert [name for name in plain if f"| `{name}` |" not in page] == []


def test_a_part_that_differs_is_replaced_and_nothing_else() -> None:
    page = "a\n<!-- made: x -->\nold\n<!-- end: x -->\nz\n"
    assert with_part(page, "x", "new") == page.replace("old", "new")


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no part 'x'"):
        with_part("text", "x", "new")
