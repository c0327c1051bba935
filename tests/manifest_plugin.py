"""Ties tests to the manifests: reads the marks `proves(…)` and `field(…)`, refuses ids that are unknown or
not built yet, keeps what nobody proves.

`tests/house/test_manifest.py` and `tests/house/test_field_reports.py` turn `UNPROVEN` and `UNTESTED` into a
failure of a full run. Not here: the requirements, and the reports from the field.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.field_reports import REPORTS, Report
from tests.requirements import REQUIREMENTS, Requirement

# The built requirements without a test, in the manifest's order; None when only some tests were collected.
UNPROVEN: pytest.StashKey[list[Requirement] | None] = pytest.StashKey()
# The same for reports from the field.
UNTESTED: pytest.StashKey[list[Report] | None] = pytest.StashKey()


def claimed_ids(items: Iterable[pytest.Item], mark_name: str) -> dict[str, str]:
    """Each id that a test names with this mark, with the name of one such test."""
    claimed: dict[str, str] = {}
    for item in items:
        for mark in item.iter_markers(mark_name):
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


def unknown_reports(claimed: dict[str, str], reports: Iterable[Report]) -> list[str]:
    """Sentences about reports that do not stand in the list, or do not apply yet."""
    known = {report.id: report for report in reports}
    sentences = []
    for name, test in claimed.items():
        if name not in known:
            sentences.append(f"{test} names the field report {name!r}, which tests/field_reports.py lacks.")
        elif (step := known[name].step) is not None:
            sentences.append(
                f"{test} names the field report {name!r}, which tests/field_reports.py puts off until "
                f"{step}: take that line away there when it applies."
            )
    return sentences


def untested(claimed: dict[str, str], reports: Iterable[Report]) -> list[Report]:
    """The reports that apply and that no test names."""
    return [report for report in reports if report.step is None and report.id not in claimed]


def is_full_run(config: pytest.Config) -> bool:
    """Whether every test was asked for: no path, no selection by word, mark or earlier failure."""
    chosen = ("keyword", "markexpr", "lf", "failedfirst", "deselect", "ignore", "ignore_glob")
    narrowed = any(config.getoption(name, default=None) for name in chosen)
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not narrowed


# First, so that the list is read before another plugin takes tests out.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Check the marks of what was collected; runs before any test."""
    claimed, named = claimed_ids(items, "proves"), claimed_ids(items, "field")
    sentences = [*unknown_ids(claimed, REQUIREMENTS), *built_meanwhile(claimed, REQUIREMENTS)]
    if sentences := [*sentences, *unknown_reports(named, REPORTS)]:
        raise pytest.UsageError("\n".join(sentences))
    full = is_full_run(config)
    config.stash[UNPROVEN] = unproven(claimed, REQUIREMENTS) if full else None
    config.stash[UNTESTED] = untested(named, REPORTS) if full else None
