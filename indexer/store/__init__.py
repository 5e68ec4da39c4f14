"""The index in a database: tables, one writer, many readers."""
