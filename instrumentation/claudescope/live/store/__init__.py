"""The SQLite store: one file, one writer, many readers."""
