"""What is kept of something too large is its beginning, says so, and is cut only once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kandev.core.cutting import MARK, NODE, cut, cut_members, size

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=6), inner, max_size=6),
    max_leaves=30,
)


@given(JSON)
def test_what_fits_is_kept_as_it_is(value: Any) -> None:
    assert cut(value, size(value)) is value
    assert cut_members({"a": value, "b": value}, 2 * size(value)) == ({"a": value, "b": value}, [])


@given(JSON, st.integers(0, 200))
def test_what_is_kept_is_within_the_bound_and_cut_once(value: Any, most: int) -> None:
    kept = cut(value, most)
    assert size(kept) <= most + len(MARK) + NODE or (kept is value and size(value) <= most)
    assert cut(kept, most) == kept
    msgspec.json.encode(kept)


def test_a_string_keeps_its_beginning_and_says_that_it_was_cut() -> None:
    assert cut("abcdef", 3) == "abc" + MARK
    output = [{"type": "text", "text": "x" * 100}, {"type": "text", "text": "y" * 100}]
    kept = cut(output, 80)
    assert kept[0]["type"] == "text"
    assert kept[0]["text"].rstrip("x") == "" or kept[0]["text"].endswith(MARK)
    assert len(kept) == 1


def test_the_small_are_kept_before_the_large() -> None:
    kept, less = cut_members({"out": "n" * 60, "in": "o", "content": "p" * 70}, 100)
    assert kept == {"out": "n" * 60, "in": "o", "content": "p" * 39 + MARK}
    assert less == ["content"]


@pytest.mark.parametrize("value", [[0] * 1000, {str(n): None for n in range(1000)}, [[]] * 1000])
def test_many_small_things_count_too(value: Any) -> None:
    assert 0 < len(cut(value, 100)) < 20
