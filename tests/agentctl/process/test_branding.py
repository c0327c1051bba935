"""Brands: inherited by everything, read from anything, ours again when the start is over."""

import os
import resource
import subprocess
import sys

import pytest

from kandev.agentctl.branding import brand_of, branding, is_of_home, read_brand


def test_a_brand_stands_for_one_execution_of_one_home() -> None:
    brand = brand_of("/home", "execution")
    assert brand == brand_of("/home", "execution")
    assert brand not in (brand_of("/home", "another"), brand_of("/elsewhere", "execution"))
    assert is_of_home(brand, "/home")
    assert not is_of_home(brand, "/elsewhere")
    assert 0 < brand < 1 << 63, "what tools that show limits can read"


def test_what_is_started_meanwhile_bears_it_through_a_new_environment_and_session() -> None:
    before = resource.getrlimit(resource.RLIMIT_RTTIME)
    brand = brand_of("/home", "execution")
    with branding(brand):
        assert read_brand(os.getpid()) == brand
        command = ["env", "-i", "setsid", "--wait", "env", "-i", "cat", "/proc/self/limits"]
        limits = subprocess.run(command, capture_output=True, check=True).stdout
    assert str(brand).encode() in limits
    assert resource.getrlimit(resource.RLIMIT_RTTIME) == before
    assert read_brand(os.getpid()) != brand


def test_without_a_brand_or_under_a_lower_limit_nothing_changes() -> None:
    before = resource.getrlimit(resource.RLIMIT_RTTIME)
    with branding(None):
        assert resource.getrlimit(resource.RLIMIT_RTTIME) == before
    script = (
        "import resource; from kandev.agentctl.branding import branding, brand_of;"
        "resource.setrlimit(resource.RLIMIT_RTTIME, (1000000, 1000000))\n"
        "with branding(brand_of('/home', 'execution')): pass\n"
        "print(resource.getrlimit(resource.RLIMIT_RTTIME))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True)
    assert done.stdout.strip() == b"(1000000, 1000000)"


@pytest.mark.parametrize("pid", [0, 2**22 + 1])
def test_a_process_that_is_not_there_has_none(pid: int) -> None:
    assert read_brand(pid) is None
