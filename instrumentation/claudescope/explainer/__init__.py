"""A service that takes alerts, explains the burn, and writes what it found where people look."""
