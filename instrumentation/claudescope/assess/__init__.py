"""Whether a step is valid and how sure it is: the protocols, the built-in checks, and the panel that runs them."""
