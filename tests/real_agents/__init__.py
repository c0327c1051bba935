"""Real agent programs as a test bed: installed from the lock file, run offline against a scripted model.

Not for tests of Kandev's own logic: those use the mock agent, which can misbehave on demand.
"""
