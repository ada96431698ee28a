"""What the notebooks say about captures, computed from them, so that it holds or goes when the captures are others."""

from __future__ import annotations

from mcplab.sources import load, of_client
from mcplab.stories.broken import behind, breach_chart, breach_headline, breaches, broken_by_client
from mcplab.stories.declared import (
    configuration,
    era_headline,
    example,
    fallbacks,
    headline,
    losses,
    most_varied,
    objects,
    offers,
    overview,
    proof,
    quote,
    side_by_side,
    spread,
    what_varies,
)
from mcplab.stories.rulings import asks, exchange, explained, gates, hello, judged, layers, play, rule, topics
from mcplab.stories.wire import about, chart, crossed, discoveries, opening, pick, silent, strip, waits
from mcplab.told import Code, Name, Picture, Told

__all__ = [
    "Code",
    "Name",
    "Picture",
    "Told",
    "about",
    "asks",
    "behind",
    "breach_chart",
    "breach_headline",
    "breaches",
    "broken_by_client",
    "chart",
    "configuration",
    "crossed",
    "discoveries",
    "era_headline",
    "example",
    "exchange",
    "explained",
    "fallbacks",
    "gates",
    "headline",
    "hello",
    "judged",
    "layers",
    "load",
    "losses",
    "most_varied",
    "objects",
    "of_client",
    "offers",
    "opening",
    "overview",
    "pick",
    "play",
    "proof",
    "quote",
    "rule",
    "side_by_side",
    "silent",
    "spread",
    "strip",
    "topics",
    "waits",
    "what_varies",
]
