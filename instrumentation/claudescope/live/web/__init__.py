"""HTTP out: the application, its API, the event stream and who may ask."""
