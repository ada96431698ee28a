"""Write the pages of docs/ that follow the code: columns.md, cli.md, rule-catalogue.md, the formats in trace-format.md.

``python scripts/make_docs.py`` writes them, ``--check`` names those out of date. A new column needs its meaning here.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mcplab import formats, rules
from mcplab.model import COLUMNS
from mcplab.spec import REVISIONS, spec_url

DOCS = Path(__file__).resolve().parents[1] / "docs"

DTYPES = {
    "str": "text; missing: NaN",
    "int64": "whole number",
    "Int64": "whole number; may be missing",
    "float": "number; missing: NaN",
    "bool": "true or false",
    "boolean": "true or false; may be missing",
    "time": "UTC, microseconds; may be missing",
}

TABLES = {
    "messages": "A row a JSON-RPC message; of a batch, a row a part.",
    "exchanges": "A row a request, with its answer or without.",
    "connections": "A row a connection: a stdio process, an HTTP session, or a TCP peer where there is no session.",
    "declarations": "A row a capability path of each declaring message, `$` (the object itself) included.",
    "channels": "A row an instance and channel: traffic, state, and why there was none.",
    "findings": "A row a verdict of a rule: what was kept and what was broken.",
    "http": "A row an HTTP exchange: one request with its response.",
    "events": "A row an event: messages, and everything else that was recorded.",
    "unparsed": "A row for what is no message: written by a party, or unreadable for the reader.",
    "instances": "`corpus.open(...)`: a row an instance. What its connections differ in is joined by commas.",
    "statements": "`statements()`, `claims()`: a row a statement on one capability path, of whatever tier.",
    "contradictions": "`contradictions()`: a row a statement that something else speaks against.",
    "variance": "`variance()`: a row a difference of one thing that a path of the client's declaration varied with.",
    "promises": "`promises()`: a row a capability path of a release, and what became of it.",
}

COMMON = {
    "trace": "the capture: its path below the folder that all have in common, without suffix",
    "instance": "one run of one client against one server; may span several connections",
    "conn": "the connection, named by its first peer",
    "peer": "the recorded connection name: a process or a TCP peer",
    "seq": "number of the event in its capture; the order on the wire",
    "part": "place in a batch, from 0; missing outside a batch",
    "ts": "when it was recorded; missing without a clock",
    "sender": "`client` or `server`; missing where the source does not tell",
    "era": "`legacy`, `modern` or `unknown`",
    "version": "protocol revision in force for the message",
    "channel": "transport channel, from the HTTP method and Content-Type that were seen",
    "http_exchange": "the HTTP exchange it belongs to",
    "status": "HTTP status",
    "content_type": "Content-Type of the HTTP message that carried it",
    "transport": "`stdio`, `http` (Streamable HTTP) or `sse` (two addresses, 2024-11-05)",
    "client": "product: the header's name for it, else `clientInfo.name`",
    "client_version": "the product's version, from where `client` comes",
    "client_info": "`clientInfo.name` as it was sent",
    "server": "`serverInfo.name`",
    "config": "name of the configuration: the header's `label`, else the file's name",
    "path": "capability path, as `sampling.tools`; `$` is the object itself",
    "activity": "what a timeline shows for it: error, disabled, request, response, notification, ping, none",
}

MEANINGS = {
    "messages": {
        "kind": "`request`, `notification`, `response`, `error`; `invalid`: JSON, but no JSON-RPC message",
        "method": "the method; of an answer, of the request that it answers",
        "id": 'JSON text of the id (`1` is not `"1"`); missing: no member',
        "reply_to": "`seq` of the request that it answers",
        "reply_part": "`part` of that request",
        "latency": "seconds from the request to this answer",
        "http_method": "method of the HTTP request",
        "size": "length of the message's text in bytes",
        "message": "the message's own text, byte for byte",
    },
    "exchanges": {
        "method": "what was asked",
        "id": 'JSON text of the id (`1` is not `"1"`)',
        "outcome": "`result`, `error`, `input_required` (a further round follows), `cancelled` or `unanswered`",
        "waited": "seconds to the answer, or to the connection's last event where none came",
        "error_code": "code of a JSON-RPC error",
        "latency": "seconds to the answer; missing: none came",
        "notifications": "notifications that name it: its progress, log messages on its POST, its subscription",
        "group": "`seq` of the first round of a request that was asked in several rounds",
        "reply_seq": "`seq` of the answer",
        "reply_part": "`part` of the answer",
    },
    "connections": {
        "era": "`legacy`: an initialize got a result; `modern`: a modern request got one; `both`; else `unknown`",
        "mode": "`auto` or `forced` where the header or our own handshake says so, else `unknown`",
        "label": "in short: `2026-07-28 (modern)`, `2025-11-25 (forced legacy)`, `none (offered 2025-11-25)`",
        "offered": "revisions that the client asked for, in order",
        "selected": "revision that was agreed on",
        "discovery": "how the era was found: `modern`, `legacy-fallback`, `probe`, `failed`, `none`",
        "discovery_detail": "what the server offered, or why it refused",
        "client_from": "where `client` comes from: `header` or `wire`",
        "server_version": "`serverInfo.version`",
        "session": "id in the response header of initialize; `local` on stdio; missing: none",
        "health": "state of the client's pings at the end: ok, missed, failed, stale, error, offline, pending",
        "instructions": "instructions that the server sent",
        "calls": "the client's requests counted by name, without pings",
        "complete": "initialize, its result and initialized were all seen; missing for modern",
        "first": "time of the first event",
        "last": "time of the last event",
        "messages": "how many messages",
        "peers": "the peers that it is made of",
        "first_seq": "`seq` of the first event",
        "last_seq": "`seq` of the last event",
        "ping_interval": "seconds between pings: the header's, else the median gap",
        "ping_missed": "pings without an answer in a row, at the end",
        "ping_limit": "how many of those make the connection failed",
        "ping_answered": "when a ping was last answered",
    },
    "declarations": {
        "party": "who declares: `client` or `server`",
        "revision": "protocol revision under which it was declared",
        "place": "`initialize`, `initialize_result`, `request_meta` or `discover_result`",
        "state": "`absent`, `null`, `empty`, `object`, `true`, `false` or `value`",
        "value": "JSON text; leaves only",
        "tier": "where the statement comes from; `observed`: a message",
        "evidence": "`trace#seq`",
        "duplicate": "the key stood there more than once; the last one counts",
        "disputed": "the message itself is in doubt, as two answers to one initialize",
    },
    "channels": {
        "state": "`open`, `closed`, `disabled`, `unavailable` or `not observed`",
        "why": "the reason, where a channel is disabled or unavailable",
        "request": "requests, both directions",
        "response": "answers",
        "notification": "notifications",
        "ping": "pings and their answers",
        "error": "JSON-RPC errors",
        "last_error": "text of the last error",
        "last_status": "last HTTP status",
        "failures": "refusals and unreadable text that carried no message",
    },
    "findings": {
        "rule": "id of the rule",
        "level": "`MUST`, `SHOULD` ...",
        "confidence": "how surely a capture can tell",
        "party": "who is bound by the rule",
        "verdict": "`kept`, `broken`, `unexercised` or `unknown`",
        "seq": "the event that it is about",
        "anchor": "`absence` where something never came; then `seq` is the first event that proves it",
        "related": "other events that belong to it",
        "n": "how often the rule applied",
        "revision": "the revision that it was judged by",
        "title": "the rule in a line",
        "detail": "what was seen",
        "section": "where the specification says so",
    },
    "http": {
        "method": "HTTP method",
        "path": "path of the request",
        "session": "Mcp-Session-Id of the request, else of the response",
        "version_header": "MCP-Protocol-Version of the request",
        "last_event_id": "Last-Event-ID of the request",
        "seq": "`seq` of the request",
        "response_seq": "`seq` of the response's first event",
        "last_seq": "`seq` of its last event",
        "ts": "time of the request",
        "response_ts": "time of the response's first event",
        "last_ts": "time of its last event",
        "client_messages": "messages in the request",
        "server_messages": "messages in the response",
        "ended": "the response's end was seen; missing: the capture cannot tell",
        "request_headers": "JSON text of the headers that were kept",
        "response_headers": "JSON text of the headers that were kept",
    },
    "events": {
        "kind": "`message`, `http`, `sse`, `open`, `close`, `stderr` or `unparsed`",
        "http_method": "method of the HTTP request",
        "size": "length of the text in bytes",
        "text": "what an event without a message holds: a line of stderr, an SSE event, unreadable text",
        "reason": "why a connection or stream was closed",
        "file": "the file it came from",
        "line": "its line there",
    },
    "unparsed": {
        "where": "`wire`: a party wrote it; `file`: the reader cannot read it",
        "file": "the file it came from",
        "line": "its line there",
        "text": "the text, shortened",
        "reason": "what is wrong with it",
    },
    "instances": {
        "label": "as in `connections`",
        "server": "`serverInfo.name`, as sent",
        "server_version": "as in `connections`",
        "discovery": "as in `connections`",
        "calls": "the client's requests by name, without pings",
        "kind": "equal for instances that declared the same under the same circumstances; `~`: not always the same",
        "setup": "JSON text: what the header says of configuration and server, besides names",
        "connections": "how many connections it had",
        "messages": "messages, both directions",
        "first": "time of its first event",
        "last": "time of its last event",
        "broken": "breaches of rules; missing where they were not checked",
    },
    "statements": {
        "party": "whose capability it is; `server`: whether the client makes use of what a server declares",
        "client_version": "the release that the statement is about; missing where the source names none",
        "client_info": "`clientInfo.name`, as sent, or as the source gives it",
        "revision": "protocol revisions that it is about",
        "place": "the declaring message's kind, or where in the source it stands",
        "seq": "number of the event; missing for what is no message",
        "state": "a state, where the statement gives one",
        "value": "JSON text, where the statement gives one; leaves only",
        "tier": "`observed` (a message), `exercised` (traffic), `read` (source, cited), `listed` (published table)",
        "evidence": "`trace#seq`, or the citation",
        "name": "the client as the source names it",
        "declares": "`yes`, `no`, `varies` (it depends on `when`) or `unknown`",
        "implements": "`yes`, `no`, `more` (than is declared) or `unknown`; missing: not spoken of",
        "only": "of `$`: the source says that nothing else is declared",
        "when": "under which condition, in the source's sense",
        "settings": "names of settings that, by the source, switch it",
        "status": "exercised: what traffic did with it, as `exercised()` words it",
        "n": "exercised: messages that needed it",
        "worked": "exercised: of those, how many came to something",
        "refused": "exercised: of those, how many were answered with an error",
        "date": "day of the capture; of a claim, the day on which its source was last verified",
        "source": "address of the document or table",
        "commit": "commit that was read",
        "file": "file in the source that was read",
        "lines": "its lines",
        "text": "what the source says, where it cannot be put into the other columns",
    },
    "contradictions": {
        "party": "whose capability it is",
        "what": "`declares`, `implements` or `settings` (which of them switch it)",
        "tier": "of the claim: `read` or `listed`",
        "claimed": "what is claimed",
        "claimed_version": "the release that the claim is about; missing: none is named",
        "claimed_date": "when the claim was last verified",
        "when": "the condition that the claim names",
        "source": "address of the document or table",
        "citation": "where in it, and what it rests on",
        "against": "tier of what speaks against it",
        "found": "what was found instead",
        "found_version": "releases in which it was found",
        "found_date": "first and last day of the captures, or the other claim's date",
        "instances": "instances that can be held against the claim",
        "agree": "of those, how many agree with it",
        "reason": "`changed since`, `differs by release`, `differs by configuration`, `wrong` or `unknown`",
        "why": "the rule that gave the reason",
        "evidence": "first messages or the citation that speak against it",
    },
    "variance": {
        "factor": "version, transport, era, server, sub-command, configuration, request; `+`: not to be told apart",
        "name": "the setting, or the column, that differs",
        "a": "its value on one side, as JSON text; missing: not set",
        "b": "its value on the other side",
        "state_a": "state of the path there",
        "state_b": "state of the path there",
        "contexts": "how many times the two were tried with all else equal, and the path differed",
        "same": "how many times it was tried so, and the path did not differ",
        "given": "what else was set in every one of those contexts, as JSON text",
        "evidence_a": "messages, as `trace#seq`",
        "evidence_b": "messages, as `trace#seq`",
    },
    "promises": {
        "kind": "kept; declared, never used; used undeclared; refused; unanswered; broke a rule; never apart",
        "by": "who has to act on the path: `client` or `server`",
        "other": "`never apart`: the path that it always comes with",
        "rule": "`broke a rule`: which one",
        "instances": "instances of which it is true",
        "of": "instances that it can be judged on",
        "configurations": "different settings among them",
        "n": "messages, uses or breaches",
        "evidence": "first messages, as `trace#seq`",
    },
}


def meaning(table: str, column: str) -> str:
    """What a column of a table holds; KeyError where nobody wrote it down."""
    own = MEANINGS[table].get(column)
    return COMMON[column] if own is None else own


def columns_page() -> str:
    parts = [
        "# Columns\n",
        "The tables of a `Trace` or `Traces`, then those of functions; `scripts/make_docs.py` writes this page.\n",
        "Missing is never false, zero or empty text. Times carry their zone (UTC). Order is `seq`, never the clock.\n",
        "| dtype | |\n|---|---|\n" + "".join(f"| {name} | {text} |\n" for name, text in DTYPES.items()),
    ]
    for table, columns in COLUMNS.items():
        rows = "".join(f"| `{name}` | {dtype} | {meaning(table, name)} |\n" for name, dtype in columns.items())
        parts.append(f"## {table}\n\n{TABLES[table]}\n\n| column | dtype | |\n|---|---|---|\n{rows}")
    return "\n".join(parts)


def cli_page() -> str:
    from typer.main import get_command

    from mcplab.cli import app

    group = get_command(app)
    parts = [
        "# Command line\n",
        "What `mcplab COMMAND --help` says; `scripts/make_docs.py` writes this page.\n",
        (
            "Exit status: 0 fine; 1 it failed (`diff`: they differ); 2 wrong use (`diff`: one cannot be read). "
            "What went wrong is one line on stderr.\n"
        ),
        "Control characters in names from a trace are shown as escapes.\n",
        _help(group, "mcplab"),
    ]
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        parts.append(f"## mcplab {name}\n\n{_help(command, f'mcplab {name}')}")
        for below, one in getattr(command, "commands", {}).items():
            parts.append(f"### mcplab {name} {below}\n\n{_help(one, f'mcplab {name} {below}')}")
    return "\n".join(parts)


def _help(command: object, path: str) -> str:
    context = command.make_context(path, [], resilient_parsing=True)  # type: ignore[attr-defined]
    context.terminal_width = context.max_content_width = 100
    lines = (line.rstrip() for line in command.get_help(context).splitlines())  # type: ignore[attr-defined]
    return "```\n" + "\n".join(lines) + "\n```\n"


BEGIN, END = "<!-- formats: written by scripts/make_docs.py -->\n", "<!-- end of formats -->\n"


def trace_format_page() -> str:
    """The page as it stands, with the table of formats renewed."""
    text = (DOCS / "trace-format.md").read_text(encoding="utf-8")
    rows = "".join(
        f"| `{module.NAME}` | {module.TITLE} | {'yes' if hasattr(module, 'write') else ''} |\n"
        for module in formats.FORMATS
    )
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n| name | what | written too |\n|---|---|---|\n{rows}\n{END}{rest.partition(END)[2]}"


def catalogue_page() -> str:
    """The rule catalogue: a table a topic, a row a rule, with where the newest revision that has it says it."""
    found = rules()
    lines = [
        "# Rule catalogue", "",
        f"The {len(found)} rules that `mcplab check` judges by, as `mcplab.rules()` has them;",
        "`scripts/make_docs.py` writes this page. `mcplab rules ID` shows one with an exchange that keeps and one that",
        "breaks it; how they are judged: [rules.md](rules.md). Confidence: how surely a capture shows a breach; rules",
        "of low confidence give hints only.",
    ]  # fmt: skip
    topics = found["id"].str.partition(".")[0]
    for topic, group in found.sort_values("id").groupby(topics, sort=True):
        lines += ["", f"## {topic}", "", "| rule | binds | level | confidence | what it asks | revisions, source |"]
        lines.append("|---|---|---|---|---|---|")
        for row in group.itertuples():
            revisions = row.revisions.split(", ")
            page, _, anchor = row.section.rpartition("; ")[2].rpartition(": ")[2].partition("#")
            whole = [one for one in REVISIONS if revisions[0] <= one <= revisions[-1]] == revisions
            span = f"{revisions[0]} to {revisions[-1]}" if whole and len(revisions) > 2 else ", ".join(revisions)
            source = f"[{span}]({spec_url(revisions[-1], page, anchor)})"
            title = row.title.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;")
            lines.append(f"| `{row.id}` | {row.party} | {row.level} | {row.confidence} | {title} | {source} |")
    return "\n".join(lines) + "\n"


PAGES = {
    "columns.md": columns_page, "cli.md": cli_page, "trace-format.md": trace_format_page,
    "rule-catalogue.md": catalogue_page,
}  # fmt: skip


def main(arguments: list[str]) -> int:
    stale = [name for name, make in PAGES.items() if _stored(name) != make()]
    if "--check" in arguments:
        for name in stale:
            print(f"docs/{name} is out of date: run python scripts/make_docs.py", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        (DOCS / name).write_text(PAGES[name](), encoding="utf-8")
        print(f"docs/{name}")
    return 0


def _stored(name: str) -> str:
    file = DOCS / name
    return file.read_text(encoding="utf-8") if file.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
