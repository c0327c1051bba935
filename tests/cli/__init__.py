"""The command line, against a small backend of these tests that answers the contract's shapes."""
