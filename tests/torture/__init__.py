"""Torture: real programs under random load and random kills, then a census of everything that must hold.

`python -m tests.torture --rounds N --seed S`. A round is one home with several sessions at once: its `plan`
is drawn from the seed, `play` and `faults` carry it out, `evidence` collects what can be seen afterwards (the
database, the public doors, the agents' own logs, the process table, the home), and `census` judges it.
"""
