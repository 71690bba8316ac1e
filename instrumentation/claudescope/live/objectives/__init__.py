"""Objectives on the server's own counts: ledger, burn rates, alerts."""
