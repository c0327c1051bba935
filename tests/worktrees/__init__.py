"""Worktrees and the catalogue of agents, against real git and real programs."""
