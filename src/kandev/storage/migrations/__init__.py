"""The database's history: one file per step in `versions`, run by `schema.upgrade`."""
