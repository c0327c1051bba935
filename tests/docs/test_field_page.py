"""The page of the reports from the field finds every mark, wherever it stands in the tests."""

from __future__ import annotations

from tests.docs.field_page import TESTS, found_by_report, marks_in

MARK = "@pytest.mark." + "field("
SOURCE = """
import pytest

@pytest.mark.proves("X")
@pytest.mark.field("A01", "B03")
@pytest.mark.parametrize("x", [1])
async def test_it_works(x): ...

@pytest.mark.field("A01")
def test_it_works_too(): ...

def test_it_is_not_named(): ...
"""


def test_each_name_in_each_mark_is_found_with_its_test() -> None:
    assert list(marks_in(SOURCE)) == [
        ("A01", "test_it_works"),
        ("B03", "test_it_works"),
        ("A01", "test_it_works_too"),
    ]


def test_no_mark_stands_where_the_page_does_not_look() -> None:
    listed = {(path, name) for tests in found_by_report().values() for path, name in tests}
    for path in TESTS.rglob("test_*.py"):
        written = path.read_text(encoding="utf-8").count(MARK) if path.name != "test_field_page.py" else 0
        assert written == sum(place == path for place, _ in listed), path
