"""A server of our own, correct in every revision, that can also misbehave on purpose: for lessons, tests and probes."""
