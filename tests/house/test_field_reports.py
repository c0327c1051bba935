"""The list of reports from the field is complete, and each one that applies has a test that names it."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.field_reports import REPORTS, STEPS, Report
from tests.manifest_plugin import UNTESTED, unknown_reports, untested

APPLIES = Report("A01", "It breaks.", "It does not.")
LATER = Report("A03", "It breaks.", "It does not.", "user interface", "there is none yet.")


def test_every_report_that_applies_has_a_test(request: pytest.FixtureRequest) -> None:
    missing = request.config.stash[UNTESTED]
    if missing is None:
        pytest.skip("Only a run of all tests can say which reports nobody tests.")
    sentences = [f"{r.id}: {r.symptom} {r.behaviour}" for r in missing]
    assert not sentences, "\n".join(["These reports from the field have no test:", *sentences])


def test_no_report_stands_twice() -> None:
    assert [name for name, count in Counter(r.id for r in REPORTS).items() if count > 1] == []


def test_the_numbers_of_a_letter_have_no_gap() -> None:
    """Odd ones only, as they came: a gap is a report that was lost."""
    for letter, count in {"A": 24, "B": 26, "C": 29, "D": 25, "E": 17}.items():
        wanted = [f"{letter}{number:02}" for number in range(1, 2 * count, 2)]
        assert [r.id for r in REPORTS if r.id.startswith(letter)] == wanted


def test_every_report_is_a_symptom_and_a_behaviour_and_what_is_put_off_says_until_when() -> None:
    odd = [r for r in REPORTS if not all(text.endswith(".") for text in (r.symptom, r.behaviour))]
    odd += [
        r for r in REPORTS if r.step is not None and (r.step not in STEPS or not (r.why or "").endswith("."))
    ]
    assert odd == []


def test_an_unknown_report_and_one_that_is_put_off_are_named_with_their_test() -> None:
    [lacks, early] = unknown_reports({"A01": "test_a", "A99": "test_b", "A03": "test_c"}, [APPLIES, LATER])
    assert lacks == "test_b names the field report 'A99', which tests/field_reports.py lacks."
    assert early.startswith("test_c names the field report 'A03'")
    assert "until user interface" in early


def test_only_a_report_that_applies_and_has_no_test_is_untested() -> None:
    other = Report("A05", "It breaks.", "It does not.")
    assert untested({"A05": "test_a"}, [APPLIES, LATER, other]) == [APPLIES]
