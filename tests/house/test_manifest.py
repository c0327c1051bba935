"""The manifest is complete: every built promise has a test, and no test claims an unknown or later one."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.manifest_plugin import UNPROVEN, built_meanwhile, unknown_ids, unproven
from tests.requirements import REQUIREMENTS, Requirement


def test_every_built_requirement_has_a_test(request: pytest.FixtureRequest) -> None:
    missing = request.config.stash[UNPROVEN]
    if missing is None:
        pytest.skip("Only a run of all tests can say which requirements nobody proves.")
    sentences = [f"{r.id} ({r.source}): {r.text}" for r in missing]
    assert not sentences, "\n".join(["These requirements have no test:", *sentences])


def test_no_id_stands_twice_in_the_manifest() -> None:
    twice = [name for name, count in Counter(r.id for r in REQUIREMENTS).items() if count > 1]
    assert twice == []


def test_every_requirement_has_an_id_without_spaces_and_a_sentence() -> None:
    odd = [r for r in REQUIREMENTS if not r.id or " " in r.id or not r.text.endswith((".", ":"))]
    assert odd == []


def test_an_unknown_id_is_named_with_the_test_that_claims_it() -> None:
    known = [Requirement("A-1", "here", "It works.")]
    sentences = unknown_ids({"A-1": "test_a", "A-2": "test_b"}, known)
    assert sentences == ["test_b claims to prove 'A-2', which the manifest does not know."]


def test_a_test_of_what_is_listed_as_not_built_yet_says_that_it_has_to_move() -> None:
    manifest = [Requirement("A-1", "here", "It works."), Requirement("A-2", "here", "It will work.", issue=9)]
    [sentence] = built_meanwhile({"A-1": "test_a", "A-2": "test_b"}, manifest)
    assert sentence.startswith("test_b proves 'A-2', which tests/requirements_later.py lists as not built")
    assert "move it to BUILT in tests/requirements.py" in sentence


def test_only_a_built_requirement_without_a_test_is_unproven() -> None:
    built = Requirement("A-1", "here", "It works.")
    proven = Requirement("A-2", "here", "It works, too.")
    later = Requirement("A-3", "here", "It will work.", issue=9)
    assert unproven({"A-2": "test_a"}, [built, proven, later]) == [built]
