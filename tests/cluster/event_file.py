"""Reads TensorBoard's event files, as far as our tests look: steps and their numbers. Written from the format's
description, not from our writer: records of length, CRC, bytes, CRC; an Event has fields 1 time, 2 step, 5 summary."""

import struct


def records(data):
    at = 0
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        yield data[at + 12:at + 12 + length]
        at += 16 + length


def fields(message):
    """(number, value) of a message of Protocol Buffers."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(message):
        tag = varint()
        kind = tag & 7
        if kind == 0:
            value = varint()
        elif kind == 2:
            size = varint()
            value = message[at:at + size]
            at += size
        else:
            form, size = ("<d", 8) if kind == 1 else ("<f", 4)
            value, = struct.unpack_from(form, message, at)
            at += size
        yield tag >> 3, value


def read_steps(path):
    """{tag: value} of each step, in order; the steps must count from 0."""
    steps = []
    for record in records(path.read_bytes()):
        event = dict(fields(record))
        if 5 not in event:
            continue
        assert event.get(2, 0) == len(steps), path
        values = [dict(fields(value)) for number, value in fields(event[5]) if number == 1]
        steps.append({value[1].decode(): value[2] for value in values})
    return steps
