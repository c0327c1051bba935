"""The page with the session's states is drawn from the tables."""

import subprocess
import sys
from pathlib import Path

import pytest

from kandev.core import machines
from kandev.core.session import Launch, Outcome, Phase
from tools import draw_states


@pytest.mark.proves("STATE-diagram")
def test_the_page_is_in_step_with_the_tables() -> None:
    done = subprocess.run(
        [sys.executable, "tools/draw_states.py", "--check"],
        cwd=draw_states.ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.proves("STATE-diagram")
def test_a_page_that_lacks_a_move_is_noticed(tmp_path: Path) -> None:
    copy = tmp_path / "page.md"
    assert not draw_states.in_step(copy)
    copy.write_text(draw_states.page())
    assert draw_states.in_step(copy)
    copy.write_text(draw_states.page().replace("    ready --> closing\n", ""))
    assert not draw_states.in_step(copy)


def test_every_move_of_every_table_is_drawn() -> None:
    text = draw_states.page()
    for table in (machines.LAUNCH_MOVES, machines.TURN_MOVES, machines.OUTCOME_MOVES, machines.WIRE_MOVES):
        for old, targets in table.items():
            for new in targets:
                assert f"    {old} --> {new}\n" in text


def test_every_word_of_the_machines_is_in_its_table() -> None:
    assert set(machines.LAUNCH_MOVES) == set(Launch)
    assert set(machines.TURN_MOVES) == set(Phase)
    assert set(machines.OUTCOME_MOVES) == set(Outcome)


def test_an_unknown_argument_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert draw_states.main(["--draw"]) == 2
    assert "--draw" in capsys.readouterr().err
