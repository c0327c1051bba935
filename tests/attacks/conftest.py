"""A running Kandev for each attack that asks for one."""

from tests.e2e.conftest import kandev

__all__ = ["kandev"]
