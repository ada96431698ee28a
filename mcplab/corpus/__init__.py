"""Many traces: the same tables, made once and kept as Parquet, from a laptop to a cluster (docs/scale.md).

``build`` makes a corpus of files, ``open`` gives its tables and answers, ``day`` makes up a gateway's traffic.
"""

from __future__ import annotations

from mcplab.corpus.building import build
from mcplab.corpus.gateway import day
from mcplab.corpus.store import Corpus
from mcplab.corpus.store import opened as open

__all__ = ["Corpus", "build", "day", "open"]
