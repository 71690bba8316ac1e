"""The embedded server: OTLP receiver, SQLite store, rolling aggregates, server-sent events and the page.

It knows the names in ``semconv`` only, so it shows the steps of any sender of those names.
"""
