"""The checks, one module a topic: plain functions from a Fact to an outcome (docs/rules.md)."""
