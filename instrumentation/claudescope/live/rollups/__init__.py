"""Rolling figures by time and step."""
