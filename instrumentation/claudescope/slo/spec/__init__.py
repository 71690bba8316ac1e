"""Specifications: YAML files to objectives, with a line and a fix for everything that is wrong."""
