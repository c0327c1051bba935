"""The store in SQL: tables, one module per noun, the transaction, and what runs it (threads, or inline)."""
