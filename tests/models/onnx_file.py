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


def fields(data):
    """(number, content, the field as it lies in the file) of each; content None if it holds no bytes."""
    at = 0
    while at < len(data):
        start = at
        tag, at = read_varint(data, at)
        kind, content = tag & 7, None
        if kind == 0:
            _, at = read_varint(data, at)
        elif kind == 2:
            size, at = read_varint(data, at)
            content, at = data[at:at + size], at + size
        else:
            at += {1: 8, 5: 4}[kind]
        yield tag >> 3, content, data[start:at]


def messages(data, wanted):
    """The contents of the fields `wanted`, which hold bytes."""
    return (content for number, content, _ in fields(data)
            if number == wanted and content is not None)


def names_read(node):
    """By a node, or by the graphs in its attributes."""
    names = {bytes(name) for name in messages(node, 1)}
    for attribute in messages(node, 5):
        for number, content, _ in fields(attribute):
            if number not in (6, 11) or content is None:
                continue
            for inner in messages(content, 1):
                names |= names_read(inner)
            names |= {bytes(name) for output in messages(content, 12)
                      for name in messages(output, 1)}
    return names


def shuffled_nodes(nodes, random):
    """Another order in which each value is made before it is read."""
    maker = {bytes(name): i for i, one in enumerate(nodes) for name in messages(one, 2)}
    makers = [{maker[name] for name in names_read(one) if name in maker} - {i}
              for i, one in enumerate(nodes)]
    readers = [[] for _ in nodes]
    for i, of_one in enumerate(makers):
        for one in of_one:
            readers[one].append(i)
    missing = [len(of_one) for of_one in makers]
    ready = [i for i, count in enumerate(missing) if count == 0]
    order = []
    while ready:
        at = random.randrange(len(ready))
        ready[at], ready[-1] = ready[-1], ready[at]
        done = ready.pop()
        order.append(done)
        for reader in readers[done]:
            missing[reader] -= 1
            if missing[reader] == 0:
                ready.append(reader)
    return order


def shuffled(data, random):
    """The same model with its nodes, constants and declared types in another order."""
    result = []
    for number, content, whole in fields(memoryview(data)):
        if number != 7:
            result.append(bytes(whole))
            continue
        kept, nodes, free = [], [], []
        for inner_number, inner, inner_whole in fields(content):
            if inner_number == 1:
                nodes.append((inner, inner_whole))
            else:
                (free if inner_number in (5, 13) else kept).append(inner_whole)
        order = shuffled_nodes([inner for inner, _ in nodes], random)
        random.shuffle(free)
        result.append(text(7, b''.join([bytes(one) for one in kept + free] +
                                       [bytes(nodes[i][1]) for i in order])))
    return b''.join(result)


def operators(path):
    """The operator of each node of a file's graph."""
    with open(path, 'rb') as file:
        data = memoryview(file.read())
    return [bytes(op).decode() for graph in messages(data, 7) for one in messages(graph, 1)
            for op in messages(one, 4)]
