"""What decides about a session takes no locks: nothing can be held while somebody waits for an agent."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "kandev"
LOCKS = frozenset({"Lock", "RLock", "Semaphore", "BoundedSemaphore", "Condition", "Barrier"})


def locks_in(text: str) -> list[str]:
    """The names of locks that a module makes or names."""
    nodes = list(ast.walk(ast.parse(text)))
    named = [n.attr for n in nodes if isinstance(n, ast.Attribute)]
    named += [n.id for n in nodes if isinstance(n, ast.Name)]
    return sorted(LOCKS & set(named))


@pytest.mark.field("B01", "B03")
@pytest.mark.parametrize("layer", ["core", "runtime", "usecases"])
def test_no_layer_that_decides_about_sessions_has_a_lock(layer: str) -> None:
    modules = sorted((SOURCE / layer).rglob("*.py"))
    assert len(modules) > 5
    found = {path.name: locks for path in modules if (locks := locks_in(path.read_text(encoding="utf-8")))}
    assert found == {}


def test_a_lock_is_found_by_any_of_its_names() -> None:
    assert locks_in("import asyncio\nguard = asyncio.Lock()\n") == ["Lock"]
    assert locks_in("from threading import RLock as R, Condition\nx = Condition()\n") == ["Condition"]
