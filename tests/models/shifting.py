"""History queues that move all of their entries each frame: what docs/pipeline.md says, in Python.

Values are flat lists of numbers, row-major, with a shape.
"""
import struct

CODES = {'f32': 'f', 'f64': 'd', 'u8': 'B', 'i8': 'b', 'i16': 'h', 'u16': 'H', 'i32': 'i', 'i64': 'q'}


def count_of(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


def pack(dtype, values):
    return struct.pack('<%d%s' % (len(values), CODES[dtype]), *values)


def unpack(dtype, data):
    return list(struct.unpack('<%d%s' % (len(data) // struct.calcsize(CODES[dtype]), CODES[dtype]),
                              data))


def joined(parts, shape, axis):
    """Of one shape, along an axis: (values, shape)."""
    inner = count_of(shape[axis:])
    values = []
    for outer in range(count_of(shape[:axis])):
        for part in parts:
            values += part[outer * inner:(outer + 1) * inner]
    return values, shape[:axis] + [shape[axis] * len(parts)] + shape[axis + 1:]


class Queue:
    def __init__(self, stage, shape):
        self.stage, self.shape = stage, list(shape)
        self.samples, self.stride = stage['samples'], stage.get('stride', 1)
        self.delay, self.pooled = stage.get('delay', 0), stage.get('pool', 'none') == 'max'
        length = self.samples * self.stride if self.pooled else \
            (self.samples - 1) * self.stride + 1
        self.start = [[stage.get('initial', 0)] * count_of(shape)] * (length + self.delay)
        self.entries = list(self.start)

    def push(self, value):
        self.entries = self.entries[1:] + [value]

    def read(self):
        """(values, shape); with a delay it may be called before this frame's value is pushed."""
        entries = self.entries[:len(self.entries) - self.delay]
        if self.pooled:
            groups = [entries[i:i + self.stride] for i in range(0, len(entries), self.stride)]
            parts = [list(map(max, *group)) if len(group) > 1 else group[0] for group in groups]
        else:
            parts = entries[::self.stride]
        if 'concat' in self.stage:
            return joined(parts, self.shape, self.stage['concat'])
        axis = self.stage['stack']
        return joined(parts, self.shape[:axis] + [1] + self.shape[axis:], axis)
