"""The conformance suite of the MCP project against our server and our client, beside our own findings."""
