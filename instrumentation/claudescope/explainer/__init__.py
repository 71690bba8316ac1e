"""The service that explains an alert: takes Alertmanager's webhooks, finds the burning slice, and says so."""
