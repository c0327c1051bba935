"""Ties tests to the manifest: reads the marks `proves(…)`, refuses ids that are unknown or not built yet,
keeps what nobody proves.

`tests/house/test_manifest.py` turns `UNPROVEN` into a failure of a full run. Not here: the requirements.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.requirements import REQUIREMENTS, Requirement

# The built requirements without a test, in the manifest's order; None when only some tests were collected.
UNPROVEN: pytest.StashKey[list[Requirement] | None] = pytest.StashKey()


def proven_ids(items: Iterable[pytest.Item]) -> dict[str, str]:
    """Each id that a test claims to prove, with the name of one such test."""
    claimed: dict[str, str] = {}
    for item in items:
        for mark in item.iter_markers("proves"):
            claimed.update(dict.fromkeys(mark.args, item.nodeid))
    return claimed


def unknown_ids(claimed: dict[str, str], requirements: Iterable[Requirement]) -> list[str]:
    """Sentences about ids that the manifest does not know."""
    known = {requirement.id for requirement in requirements}
    return [
        f"{test} claims to prove {name!r}, which the manifest does not know."
        for name, test in claimed.items()
        if name not in known
    ]


def built_meanwhile(claimed: dict[str, str], requirements: Iterable[Requirement]) -> list[str]:
    """Sentences about ids that are listed as not built yet, and proven all the same."""
    later = {requirement.id for requirement in requirements if requirement.issue is not None}
    return [
        f"{test} proves {name!r}, which tests/requirements_later.py lists as not built yet: "
        "move it to BUILT in tests/requirements.py, or give the part that is built an id of its own there."
        for name, test in claimed.items()
        if name in later
    ]


def unproven(claimed: dict[str, str], requirements: Iterable[Requirement]) -> list[Requirement]:
    """The built requirements that no test claims to prove."""
    return [r for r in requirements if r.issue is None and r.id not in claimed]


def is_full_run(config: pytest.Config) -> bool:
    """Whether every test was asked for: no path, no selection by word, mark or earlier failure."""
    chosen = ("keyword", "markexpr", "lf", "failedfirst", "deselect", "ignore", "ignore_glob")
    narrowed = any(config.getoption(name, default=None) for name in chosen)
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not narrowed


# First, so that the list is read before another plugin takes tests out.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Check the marks of what was collected; runs before any test."""
    claimed = proven_ids(items)
    if sentences := [*unknown_ids(claimed, REQUIREMENTS), *built_meanwhile(claimed, REQUIREMENTS)]:
        raise pytest.UsageError("\n".join(sentences))
    config.stash[UNPROVEN] = unproven(claimed, REQUIREMENTS) if is_full_run(config) else None
