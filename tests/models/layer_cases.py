"""Models with one layer to measure: what it is, and how many operations it has.

Standard library only. A convolution stands between two others (`around`), as layers of models do:
alone it would read and write the row-major layout of inputs and outputs. Its neighbours are of 1x1,
or depthwise beside a depthwise one: that is bound by memory, its ceiling is that of data just used,
and on a shared machine data that is some milliseconds old has left the caches.
"""
import math

from onnx_file import integer, ints, model, node

DENSE, OTHER = 'dense', 'other'  # dense: larger than 1x1, at least 32 channels in and out


class Layer:
    def __init__(self, title, kind, operations, data):
        self.title, self.kind, self.operations, self.data = title, kind, operations, data


def conv_node(x, y, channels, outputs, kernel=(1, 1), stride=1, dilation=1, group=1):
    pads = [(extent - 1) // 2 * dilation for extent in kernel]
    attributes = [ints('kernel_shape', kernel), ints('pads', pads * 2),
                  ints('strides', (stride, stride)), ints('dilations', (dilation, dilation)),
                  integer('group', group)]
    return (node('Conv', [x, y + '_w'], y, attributes),
            (y + '_w', (outputs, channels // group) + tuple(kernel)))


def conv(channels, outputs, height, width, kernel, stride=1, dilation=1, group=1, around=True):
    out_height, out_width = -(-height // stride), -(-width // stride)
    layer = conv_node('a' if around else 'x', 'layer', channels, outputs, kernel, stride, dilation,
                      group)
    nodes = [layer]
    if around:
        beside = dict(kernel=(3, 3), group=channels) if group > 1 else {}
        nodes = [conv_node('x', 'a', channels, channels, **beside), layer,
                 conv_node('layer', 'y', outputs, outputs, **beside)]
    data = model([one for one, _ in nodes], [weight for _, weight in nodes],
                 [('x', (1, channels, height, width))],
                 [('y' if around else 'layer', (1, outputs, out_height, out_width))])
    title = '%s %dx%d %d->%d %dx%d' % (
        'depthwise' if group > 1 else 'conv', *kernel, channels, outputs, height, width)
    title += ' stride %d' % stride if stride > 1 else ''
    title += ' dilation %d' % dilation if dilation > 1 else ''
    kind = DENSE if math.prod(kernel) > 1 and group == 1 else OTHER
    operations = 2 * channels // group * outputs * math.prod(kernel) * out_height * out_width
    return Layer(title, kind, operations, data)


def depthwise(channels, height, width, kernel, stride=1):
    return conv(channels, channels, height, width, kernel, stride, group=channels)


def matmul(rows, depth, columns):
    data = model([node('MatMul', ['x', 'w'], 'layer')], [('w', (depth, columns))],
                 [('x', (rows, depth))], [('layer', (rows, columns))])
    title = 'matmul %dx%dx%d' % (rows, depth, columns)
    return Layer(title, OTHER, 2 * rows * depth * columns, data)


def elementwise(op, inputs, shape):
    names = ['x', 'z'][:inputs]
    data = model([node(op, names, 'layer')], [], [(name, shape) for name in names],
                 [('layer', shape)])
    return Layer('%s %s' % (op.lower(), 'x'.join(map(str, shape))), OTHER, math.prod(shape), data)


def cases():
    return [
        conv(32, 32, 112, 112, (3, 3)),
        conv(64, 64, 56, 56, (3, 3)),
        conv(128, 128, 28, 28, (3, 3)),
        conv(256, 256, 14, 14, (3, 3)),
        conv(512, 512, 7, 7, (3, 3)),
        conv(64, 128, 56, 56, (3, 3), stride=2),
        conv(64, 64, 28, 28, (5, 5)),
        conv(64, 64, 28, 28, (5, 3)),
        conv(64, 64, 28, 28, (3, 3), dilation=2),
        conv(48, 48, 28, 28, (3, 3)),
        conv(64, 64, 13, 17, (3, 3)),
        conv(64, 256, 56, 56, (1, 1)),
        conv(256, 64, 56, 56, (1, 1)),
        conv(512, 512, 14, 14, (1, 1)),
        depthwise(96, 56, 56, (3, 3)),
        depthwise(96, 112, 112, (3, 3), stride=2),
        depthwise(240, 28, 28, (5, 5)),
        depthwise(128, 32, 48, (7, 7)),
        matmul(384, 384, 384),
        elementwise('Add', 2, (1, 64, 56, 56)),
        elementwise('Relu', 1, (1, 64, 56, 56)),
        elementwise('HardSwish', 1, (1, 64, 56, 56)),
        elementwise('Sigmoid', 1, (1, 64, 56, 56)),
    ]
