"""Benchmarks: what Kandev costs beside a floor that is measured in the same run.

Never timed tests: a figure is for reading, its ratio to the floor for comparing. Real programs, each in a
home of its own below one temporary folder, on loopback; all of them are ended and proven gone.
`docs/benchmarks.md` says how to read the table.
"""
