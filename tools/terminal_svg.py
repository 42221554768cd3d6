#!/usr/bin/env python3
"""Draws what a terminal showed as an SVG picture.

    FORCE_COLOR=1 make demo 2>&1 | tools/terminal_svg.py 'make demo' > docs/images/demo.svg

Reads text with ANSI colours from stdin; the first argument is shown as the command that was typed. Lines over COLUMNS
are broken. The text stays text: it can be searched and read aloud.
"""

import html
import re
import sys

COLUMNS = 110
CELL, LINE, MARGIN, TOP = 7.8, 17, 16, 40  # pixels of a 13 px monospaced font
BACKGROUND, TEXT = "#1e1e2e", "#cdd6f4"
COLOURS = {"31": "#f38ba8", "32": "#a6e3a1", "33": "#f9e2af", "34": "#89b4fa", "35": "#cba6f7", "36": "#94e2d5"}
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m|\x1b\[[0-9;?]*[A-Za-z]")


def style_of(codes):
    style = ""
    for code in codes:
        if code == "1":
            style += ' font-weight="bold"'
        elif code == "2":
            style += ' opacity="0.65"'
        elif code in COLOURS:
            style += f' fill="{COLOURS[code]}"'
    return style


def cells(text):
    """Lines of (character, style), with colours followed and long lines broken."""
    codes = []
    for line in text.split("\n"):
        line = line.rstrip("\r").rsplit("\r", 1)[-1].expandtabs(8)  # after a carriage return only the last part is seen
        row, at = [], 0
        while at < len(line):
            match = ESCAPE.match(line, at)
            if match:
                if match.group(1) is not None:
                    for code in match.group(1).split(";"):
                        codes = [] if code in ("", "0") else codes + [code]
                at = match.end()
                continue
            row.append((line[at], style_of(codes)))
            at += 1
        while len(row) > COLUMNS:
            yield row[:COLUMNS]
            row = row[COLUMNS:]
        yield row


def draw(text, command):
    rows = [[(c, ' font-weight="bold"') for c in f"$ {command}"]] + list(cells(text.rstrip("\n")))
    width = round(COLUMNS * CELL + 2 * MARGIN)
    height = TOP + LINE * len(rows) + MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
           f'role="img" aria-label="Output of {html.escape(command)}">',
           f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>']
    out += [f'<circle cx="{20 + 20 * i}" cy="18" r="6" fill="{colour}"/>'
            for i, colour in enumerate(("#f38ba8", "#f9e2af", "#a6e3a1"))]
    out.append(f'<g font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13" '
               f'fill="{TEXT}" xml:space="preserve">')
    for number, row in enumerate(rows):
        spans, at = [], 0
        while at < len(row):
            end = at
            while end < len(row) and row[end][1] == row[at][1]:
                end += 1
            run = "".join(c for c, _ in row[at:end])
            start = at + len(run) - len(run.lstrip())  # some viewers drop spaces in front
            run = run.strip()
            # textLength keeps columns in line whatever font the reader has.
            if run:
                spans.append(f'<text x="{MARGIN + start * CELL:g}" y="{TOP + LINE * number + 8}" '
                             f'textLength="{len(run) * CELL:g}"{row[at][1]}>{html.escape(run)}</text>')
            at = end
        out += spans
    return "\n".join(out + ["</g>", "</svg>", ""])


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    sys.stdout.write(draw(sys.stdin.read(), sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
