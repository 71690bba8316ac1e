"""The full stack (collector, Jaeger, Prometheus, Alertmanager, Grafana): its files and variables, and what it says."""
