"""What an objective will wake people for: its rules evaluated on counts, exactly as Prometheus would, and simulated."""
