"""Arithmetic on counts and series: nothing here knows where they come from."""
