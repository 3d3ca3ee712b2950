"""ONNX files by hand, as protobuf: small models to measure, and the operators of any model.

Standard library only.
"""
import math

import support


def varint(value):
    data = b''
    while value >= 0x80:
        data += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return data + bytes((value,))


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def value_info(name, shape):
    dims = b''.join(text(1, number(1, extent)) for extent in shape)
    return text(1, name) + text(2, text(1, number(1, 1) + text(2, dims)))


def weight(name, shape):
    # A short random row again and again: its length is prime, so that no two channels are alike.
    row = support.generated(name, (4099,), -0.1, 0.1, 1).tobytes()
    size = 4 * math.prod(shape)
    return b''.join(number(1, extent) for extent in shape) + number(2, 1) + text(8, name) + \
        text(9, (row * (size // len(row) + 1))[:size])


def ints(name, values):
    return text(1, name) + b''.join(number(8, value) for value in values) + number(20, 7)


def integer(name, value):
    return text(1, name) + number(3, value) + number(20, 2)


def node(op, inputs, output, attributes=()):
    """Named as its output."""
    return b''.join(text(1, name) for name in inputs) + text(2, output) + text(3, output) + \
        text(4, op) + b''.join(text(5, attribute) for attribute in attributes)


def model(nodes, weights, inputs, outputs):
    """The bytes of a file; weights, inputs and outputs: (name, shape)."""
    graph = b''.join(text(1, one) for one in nodes) + text(2, 'graph') + \
        b''.join(text(5, weight(*one)) for one in weights) + \
        b''.join(text(11, value_info(*one)) for one in inputs) + \
        b''.join(text(12, value_info(*one)) for one in outputs)
    return number(1, 8) + text(7, graph) + text(8, text(1, '') + number(2, 17))


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def messages(data, wanted):
    """The contents of the fields `wanted`, which hold bytes."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        kind = tag & 7
        if kind == 0:
            _, at = read_varint(data, at)
            continue
        size = {1: 8, 5: 4}.get(kind)
        if size is None:
            size, at = read_varint(data, at)
        if tag >> 3 == wanted:
            yield data[at:at + size]
        at += size


def operators(path):
    """The operator of each node of a file's graph."""
    with open(path, 'rb') as file:
        data = memoryview(file.read())
    return [bytes(op).decode() for graph in messages(data, 7) for one in messages(graph, 1)
            for op in messages(one, 4)]
