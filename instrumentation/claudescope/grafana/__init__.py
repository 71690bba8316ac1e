"""Grafana dashboards as code: what the names of ``semconv`` and the stack's own metrics look like to a person."""
