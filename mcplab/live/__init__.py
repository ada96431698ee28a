"""The live part: handshakes with any server, and a demo server. It makes traces; analysis never sees a socket."""
