"""Spans, metrics and events of steps and calls, and the exporters that carry them."""
