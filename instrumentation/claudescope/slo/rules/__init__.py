"""Objectives as rules for Prometheus: event rates, burn rates, alerts, and the tests that prove them."""
