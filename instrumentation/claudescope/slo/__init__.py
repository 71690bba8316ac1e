"""Objectives for quality: their specification, rules for Prometheus, plans, and explanations of a burn."""
