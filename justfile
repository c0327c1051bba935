# The commands of a developer's day. `script/setup dev` (which each of them calls) makes the environment.

# List the commands.
default:
    @just --list

# Lint, format, types, import rules, sizes, words.
check *names: _setup
    .venv/bin/python tools/check.py {{ names }}

# Every test that needs no credentials; arguments go to pytest.
test *args:
    script/test {{ args }}

# Put the code into the one format and mend what can be mended by itself.
fmt: _setup
    .venv/bin/ruff check --fix .
    .venv/bin/ruff format .

# Set up and run Kandev in the foreground.
server *args:
    script/server {{ args }}

# Run the simulation of turn control for N schedules.
simulate n="10000" *args: _setup
    .venv/bin/python -m tests.simulation --schedules {{ n }} {{ args }}

# Torture real programs for N rounds: random load, random kills, then a census.
torture n="20" *args: _setup
    .venv/bin/python -m tests.torture --rounds {{ n }} {{ args }}

# Measure Kandev beside its floors and print one table (`just bench --help`).
bench *args: _setup
    .venv/bin/python -m bench {{ args }}

# Write the lock files anew (`just lock --upgrade` moves to newer versions).
lock *args:
    script/lock {{ args }}

_setup:
    @script/setup dev
