"""How much of what an agent sends is kept, where it would otherwise be written again and again.

A tool call is announced whole with each change, and what an agent says of itself stands in every picture of
its session: a large one would cost its size each time. Not here: texts, which grow by what is added.
"""

from typing import Any, Final

MARK: Final = "… [cut here: the rest is not kept]"
NODE: Final = 8
"""What a number, a list or an object counts for, beside the characters of its strings."""


def cut(value: Any, most: int) -> Any:
    """The same JSON value, or what of it `most` characters hold. A string that lacks its end says so; what
    was cut before is not marked twice."""
    return cut_members({"": value}, most)[0][""]


def cut_members(members: dict[str, Any], most: int) -> tuple[dict[str, Any], list[str]]:
    """The same for several values that share `most`, the small ones before the large; and the names of those
    that lack something."""
    cutter = _Cutter(most)
    kept, less = dict(members), []
    for name, value in sorted(members.items(), key=lambda item: size(item[1])):
        cutter.cut = False
        shorter = cutter.keep(value)
        kept[name] = shorter if cutter.cut else value
        if cutter.cut:
            less.append(name)
    return kept, less


def size(value: Any) -> int:
    """What a JSON value counts for."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return NODE + sum(len(name) + size(member) for name, member in value.items())
    return NODE + (sum(map(size, value)) if isinstance(value, list) else 0)


class _Cutter:
    def __init__(self, left: int) -> None:
        self.left = left
        self.cut = False

    def keep(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._string(value)
        self.left -= NODE
        if isinstance(value, dict):
            return self._object(value)
        return self._list(value) if isinstance(value, list) else value

    def _string(self, value: str) -> str:
        self.left -= len(value)
        if self.left >= 0:
            return value
        self.cut = True
        kept = value.removesuffix(MARK)
        return kept[: max(0, len(value) + self.left)] + MARK

    def _list(self, value: list[Any]) -> list[Any]:
        kept = []
        for item in value:
            if self._full():
                break
            kept.append(self.keep(item))
        return kept

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        kept = {}
        for name, member in value.items():
            self.left -= len(name)
            if self._full():
                break
            kept[name] = self.keep(member)
        return kept

    def _full(self) -> bool:
        if self.left < 0:
            self.cut = True
        return self.left < 0
