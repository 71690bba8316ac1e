"""OTLP in: from a request's bytes to what is stored and shown."""
