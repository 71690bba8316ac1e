"""Where an explained alert is written: Grafana, files, a webhook, Jira, GitHub."""
