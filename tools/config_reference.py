#!/usr/bin/env python3
"""Writes docs/configuration.md from the comments of the schema, src/learn/config.proto.

    tools/config_reference.py            writes the page
    tools/config_reference.py --check    exit code 1 if it is not what it would write
"""

import pathlib
import re
import sys
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "src/learn/config.proto"
PAGE = ROOT / "docs/configuration.md"

INTRO = """# Configs

What `pscloud train` and `pscloud evaluate` are told, in protobuf's text format: `name: value` for a number, a word or a
"text", `name {{ ... }}` for a block, `#` before a comment. A field that may be repeated is written once for each value.
A mistake is answered with its place and the name that was probably meant. [../examples/linear](../examples/linear) has
whole configs; `--set async_sgd.minibatch=5000` says one field otherwise. There a name in brackets needs neither them
nor what stands before its last dot: `--set darlin.delta_max_value=2`.

What there is not is refused by name: HDFS (`hdfs`), data that each worker has for itself (`load_local_data`), and
ranges that are said beforehand (`fixed_point`).

Made by `tools/config_reference.py` from the comments in [the schema](../src/learn/config.proto).
"""


@dataclass
class Field:
    name: str
    kind: str
    label: str
    default: str
    comment: str


@dataclass
class Block:
    name: str
    comment: str
    fields: list = field(default_factory=list)
    enums: dict = field(default_factory=dict)  # name: [(value, comment)]


FIELD = re.compile(r"(optional|required|repeated) ([\w.]+) (\w+) = \d+(?: \[default = ([^\]]+)\])?;\s*(?://\s*(.*))?$")
VALUE = re.compile(r"(\w+) = \d+;\s*(?://\s*(.*))?$")


def parse(text):
    """The blocks of the schema, in its order. Comments before a field or message belong to it."""
    package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)[1]
    blocks, comment, block, enum, extends = [], [], None, None, False
    for line in map(str.strip, text.splitlines()):
        opened = re.match(r"(message|enum|extend) (\w+) \{$", line)
        if line.startswith("//"):
            comment.append(line[2:].strip())
            continue
        if opened and opened[1] != "enum":
            extends = opened[1] == "extend"
        if opened and opened[1] == "message":
            block = Block(opened[2], " ".join(comment))
            blocks.append(block)
        elif opened and opened[1] == "extend":
            block = next(one for one in blocks if one.name == opened[2])
        elif opened:
            enum = block.enums.setdefault(opened[2], [])
        elif line == "}":
            if enum is not None:
                enum = None
            else:
                block = None
        elif enum is not None and (value := VALUE.match(line)):
            enum.append((value[1], value[2] or ""))
        elif block is not None and (found := FIELD.match(line)):
            label, kind, name, default, beside = found.groups()
            name = f"[{package}.{name}]" if extends else name
            block.fields.append(Field(name, kind, label, default or "", beside or " ".join(comment)))
        comment = []
    return blocks


def write(blocks):
    known = {block.name for block in blocks}
    out = [INTRO.replace("{{", "{").replace("}}", "}")]
    for block in blocks:
        out.append(f"## {block.name}\n")
        if block.comment:
            out.append(block.comment + "\n")
        out.append("| Field | Is | Default | |")
        out.append("| --- | --- | --- | --- |")
        for one in block.fields:
            kind = f"[{one.kind}](#{one.kind.lower()})" if one.kind in known else one.kind
            label = {"repeated": "any number of ", "required": "must be there: "}.get(one.label, "")
            text = one.comment.replace("|", "\\|")
            out.append(f"| `{one.name}` | {label}{kind} | {one.default} | {text} |")
        for name, values in block.enums.items():
            out.append(f"\n{name}:\n")
            out.extend(f"- `{value}`" + (f": {text}" if text else "") for value, text in values)
        out.append("")
    return "\n".join(out)


def main(arguments):
    page = write(parse(SCHEMA.read_text(encoding="utf-8")))
    if "--check" not in arguments:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page:
        return 0
    print("docs/configuration.md is not what the schema says: run tools/config_reference.py")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
