#!/usr/bin/env python3
"""Queues of every kind against queues that move all of their entries each frame: every output byte.
Some frames are refused (a value is not finite) and must leave no trace; once, everything is reset.

usage: check_queues.py TARGET FRAMES [--from-zero]     x86-64-v2, -v3, -v4 here; aarch64 under qemu

  --from-zero   no queue has an initial value
"""
import json
import os
import struct
import sys

import onnx_file
import sequence
import shifting
import support

INPUTS = {'pixels': ('u8', [1, 6, 4, 8]), 'vector': ('f32', [1, 8]), 'odd': ('u8', [3, 5]),
          'x': ('f32', [1, 6]), 'whole': ('i32', [2, 3]), 'long': ('i64', [2]),
          'small': ('i16', [7])}
STAGES = [
    {'id': 'pictures', 'queue': 'pixels', 'samples': 2, 'stride': 4, 'concat': 1},
    {'id': 'delayed', 'queue': 'pixels', 'samples': 3, 'stride': 2, 'delay': 3, 'concat': 0},
    {'id': 'desires', 'queue': 'vector', 'samples': 25, 'stride': 4, 'pool': 'max', 'stack': 1},
    {'id': 'started', 'queue': 'vector', 'samples': 5, 'delay': 2, 'initial': 1.5, 'stack': 0},
    {'id': 'below', 'queue': 'vector', 'samples': 3, 'stride': 2, 'delay': 1, 'initial': -2.5,
     'pool': 'max', 'concat': 1},
    {'id': 'one', 'queue': 'vector', 'samples': 1, 'stack': 1},
    {'id': 'last', 'queue': 'vector', 'samples': 1, 'delay': 1, 'initial': 7, 'stack': 1},
    {'id': 'group', 'queue': 'vector', 'samples': 1, 'stride': 3, 'pool': 'max', 'concat': 0},
    {'id': 'all128', 'queue': 'vector', 'samples': 128, 'stack': 1},
    {'id': 'pooled128', 'queue': 'vector', 'samples': 32, 'stride': 4, 'pool': 'max', 'stack': 1},
    {'id': 'bytes', 'queue': 'odd', 'samples': 4, 'stride': 3, 'initial': 9, 'stack': 2},
    {'id': 'wholes', 'queue': 'whole', 'samples': 3, 'stride': 3, 'delay': 2, 'initial': -7,
     'pool': 'max', 'stack': 1},
    {'id': 'longs', 'queue': 'long', 'samples': 6, 'stride': 2, 'concat': 0},
    {'id': 'smalls', 'queue': 'small', 'samples': 2, 'stride': 5, 'delay': 1, 'stack': 0},
    {'id': 'again', 'queue': 'pictures', 'samples': 2, 'stride': 3, 'concat': 1},
    {'id': 'fed', 'queue': 'model.y', 'samples': 3, 'stride': 2, 'delay': 1, 'stack': 1},
    {'id': 'model', 'model': 'model.onnx', 'inputs': {'x': 'x', 'h': 'fed'}},
]
REFUSED = 13  # every so many frames one that is not finite


def write_pipeline(folder):
    # y = x - max(h), the newest of which is the y before; next_s = s + x, carried by the artifact.
    model = onnx_file.model(
        [onnx_file.node('ReduceMax', ['h'], 'm', [onnx_file.ints('axes', [1]),
                                                 onnx_file.integer('keepdims', 0)]),
         onnx_file.node('Sub', ['x', 'm'], 'y'), onnx_file.node('Add', ['s', 'x'], 'next_s')],
        [], [('x', (1, 6)), ('h', (1, 3, 6)), ('s', (1, 6))], [('y', (1, 6)), ('next_s', (1, 6))])
    with open(os.path.join(folder, 'model.onnx'), 'wb') as file:
        file.write(model)
    queues = [stage['id'] for stage in STAGES if 'queue' in stage]
    outputs = {'out_' + name: name for name in queues}
    outputs.update(out_y='model.y', out_s='model.next_s')
    pipeline = {'format': 'ingot-pipeline/1', 'name': 'queues', 'stages': STAGES,
                'inputs': {name: {'dtype': dtype, 'shape': shape}
                           for name, (dtype, shape) in INPUTS.items()}, 'outputs': outputs}
    source = os.path.join(folder, 'pipeline.json')
    with open(source, 'w') as file:
        json.dump(pipeline, file)
    return source


def single(value):
    """Rounded to float32; a sum of two floats in double precision, rounded once more, is that of
    float32."""
    return struct.unpack('<f', struct.pack('<f', value))[0]


def frame_values(number):
    values = {}
    for name, (dtype, shape) in INPUTS.items():
        whole = {'u8': (0, 255, 'uint8'), 'f32': (-3, 3, 'float32')}.get(
            dtype, (-9000, 9000, 'int32'))
        values[name] = list(support.generated(name, shape, whole[0], whole[1], number, whole[2]))
    if number % REFUSED == REFUSED - 1:
        values['vector'][number % 8] = float('inf')
    return values


class Reference:
    def __init__(self):
        self.queues, shapes = {}, {name: (dtype, list(shape)) for name, (dtype, shape) in INPUTS.items()}
        shapes['model.y'] = ('f32', [1, 6])
        self.dtypes = {}
        for stage in STAGES:
            if 'queue' in stage:
                dtype, shape = shapes[stage['queue']]
                queue = shifting.Queue(stage, shape)
                self.queues[stage['id']], self.dtypes[stage['id']] = queue, dtype
                shapes[stage['id']] = (dtype, queue.read()[1])
        self.sizes = {'out_' + name: len(self.packed(name)) for name in self.queues}
        self.sizes.update(out_y=24, out_s=24)
        self.reset()

    def packed(self, name):
        return shifting.pack(self.dtypes[name], self.queues[name].read()[0])

    def reset(self):
        self.sum = [0.0] * 6
        for queue in self.queues.values():
            queue.entries = list(queue.start)

    def frame(self, values):
        known = dict(values)
        # Sampled with a delay of 1, the model's output of this frame is not in it.
        fed = self.queues['fed']
        fed.push(None)
        history = fed.read()[0]
        known['model.y'] = [single(known['x'][i] - max(history[i], history[6 + i], history[12 + i]))
                            for i in range(6)]
        fed.entries[-1] = known['model.y']
        self.sum = [single(a + b) for a, b in zip(self.sum, known['x'])]
        outputs = {}
        for name, queue in self.queues.items():
            if name != 'fed':
                queue.push(known[queue.stage['queue']])
            known[name] = queue.read()[0]
            outputs['out_' + name] = self.packed(name)
        outputs['out_y'] = shifting.pack('f32', known['model.y'])
        outputs['out_s'] = shifting.pack('f32', self.sum)
        return outputs


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    target, count = sys.argv[1], int(sys.argv[2])
    if '--from-zero' in sys.argv:
        for stage in STAGES:
            stage.pop('initial', None)
    folder = support.work_folder('queues-' + target)
    artifact = sequence.Artifact(write_pipeline(folder), target, folder)
    reference, reset = Reference(), count - count // 4
    values = [frame_values(number) for number in range(count)]
    frames = [{name: shifting.pack(INPUTS[name][0], one[name]) for name in INPUTS} for one in values]
    refused = 0
    for number, (accepted, outputs) in enumerate(artifact.run(frames, reference.sizes, reset=reset)):
        if number == reset:
            reference.reset()
        expected = number % REFUSED != REFUSED - 1
        if accepted != expected:
            sys.exit('frame %d was %s' % (number, 'accepted' if accepted else 'refused'))
        if not accepted:
            refused += 1
            continue
        for name, want in reference.frame(values[number]).items():
            if outputs[name] != want:
                at = next(i for i in range(len(want)) if want[i] != outputs[name][i])
                sys.exit('frame %d: byte %d of %s differs' % (number, at, name))
    if refused != count // REFUSED:
        sys.exit('%d frames were refused' % refused)
    print('%s: %d frames of %d queues equal in every byte, %d refused, reset before frame %d' % (
        target, count, len(reference.queues), refused, reset))


if __name__ == '__main__':
    main()
