"""What ``claudescope stack check`` asks: one module a part, each with functions of a ``Stack`` that yield findings."""
