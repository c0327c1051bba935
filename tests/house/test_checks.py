"""The checks of the repository pass, and each of our own checks finds what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check import CHECKS, run
from tools.check_size import offences
from tools.check_words import empty_names, registry_hosts, unfinished

HERE = Path("src/kandev/thing.py")


@pytest.mark.parametrize("name", CHECKS)
def test_the_repository_passes(name: str) -> None:
    passed, output = run(name)
    assert passed, f"{name} found:\n{output}"


def _sentences(text: str) -> list[str]:
    return [str(offence) for offence in offences(HERE, text)]


def test_a_module_of_400_lines_passes_and_one_of_401_is_named() -> None:
    assert _sentences("x = 1\n" * 400) == []
    assert _sentences("x = 1\n" * 401) == [f"{HERE}:1: the module has 401 lines; 400 are the limit."]


def test_a_function_of_50_lines_passes_and_one_of_51_is_named() -> None:
    assert _sentences("def f():\n" + "    x = 1\n" * 49) == []
    text = "\n\nasync def f():\n" + "    x = 1\n" * 50
    assert _sentences(text) == [f"{HERE}:3: the function f has 51 lines; 50 are the limit."]


def test_a_class_of_250_lines_passes_and_one_of_251_is_named() -> None:
    assert _sentences("class C:\n" + "    x = 1\n" * 249) == []
    text = "class C:\n" + "    x = 1\n" * 250
    assert _sentences(text) == [f"{HERE}:1: the class C has 251 lines; 250 are the limit."]


def test_six_arguments_pass_without_counting_self_and_seven_are_named() -> None:
    six = (
        "class C:\n  def f(self, a, b, c, *, d, e, f): ...\n  @staticmethod\n  def g(a, b, c, d, e, f): ...\n"
    )
    assert _sentences(six) == []
    seven = "def f(a, b, c, d, e, f, g): ...\n"
    assert _sentences(seven) == [f"{HERE}:1: the function f takes 7 arguments; 6 are the limit."]


def test_a_function_inside_a_method_is_judged_too() -> None:
    text = "class C:\n  def m(self):\n    def inner(a, b, c, d, e, f, g): ...\n"
    assert _sentences(text) == [f"{HERE}:3: the function inner takes 7 arguments; 6 are the limit."]


def test_a_file_that_is_not_python_is_named() -> None:
    assert _sentences("a = 1\nb = = 2\n") == [f"{HERE}:2: not Python: invalid syntax."]


@pytest.mark.parametrize("mark", ["TO" + "DO", "FIX" + "ME", "X" * 3])
def test_an_unfinished_mark_is_found(mark: str) -> None:
    assert list(unfinished(HERE, f"a = 1\nb = 2  # {mark}: later\n")) == [
        f"{HERE}:2: {mark} marks unfinished work; finish it or take it out."
    ]


def test_a_body_that_only_raises_unfinished_is_found() -> None:
    assert len(list(unfinished(HERE, "raise NotImplemented" + "Error\n"))) == 1


def test_a_task_state_and_a_word_that_only_holds_a_mark_are_no_marks() -> None:
    state = "TO" + "DO"
    text = f'{state} = "{state}"  # created leads to {state}\n{{State.{state}: 1}}\nMAS{state}N = 1\n'
    assert list(unfinished(HERE, text)) == []


@pytest.mark.parametrize(
    "path", ["src/kandev/utils.py", "tests/helpers/thing.py", "src/kandev/models/__init__.py"]
)
def test_a_name_that_says_nothing_is_found(path: str) -> None:
    assert len(list(empty_names(Path(path)))) == 1


def test_a_registry_is_found_in_any_file() -> None:
    host = "files." + "pythonhosted" + ".org"
    found = list(registry_hosts(Path("some.lock"), f"a\nhttps://{host}/x\n"))
    assert found == [f"some.lock:2: names the package registry {host[6:]}; that is the user's own setting."]
