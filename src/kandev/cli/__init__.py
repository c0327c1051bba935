"""The command line: arguments become a start of the backend, or a call to the running one."""
