"""The store port on a database: SQL, its migrations, and how a database is opened (`opening`)."""
