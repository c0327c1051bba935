"""The whole program through its public doors: real processes, real repositories, the mock agent."""
