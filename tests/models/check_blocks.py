#!/usr/bin/env python3
"""A model of twelve equal blocks with weights of their own holds the code of one: as many programs and
bytes of code as the same model with one block, and twelve times its calls and weights.

usage: check_blocks.py [TARGET]      default: x86-64-v3
"""
import json
import os
import sys

import artifact_file
import onnx_file
import support

BLOCKS, CHANNELS, SIDE = 12, 32, 28
PADS = onnx_file.ints('pads', [1, 1, 1, 1])


def network(blocks):
    """A convolution, blocks of two convolutions around which their input is added, a convolution."""
    nodes, weights = [], []

    def convolution(value, name, inputs, outputs):
        weights.append((name + '.w', (outputs, inputs, 3, 3)))
        nodes.append(onnx_file.node('Conv', [value, name + '.w'], name, [PADS]))
        return name

    def relu(value):
        nodes.append(onnx_file.node('Relu', [value], value + '.relu'))
        return value + '.relu'

    value = relu(convolution('x', 'stem', 3, CHANNELS))
    for block in range(blocks):
        name = 'block%d' % block
        inner = relu(convolution(value, name + '.a', CHANNELS, CHANNELS))
        inner = convolution(inner, name + '.b', CHANNELS, CHANNELS)
        nodes.append(onnx_file.node('Add', [inner, value], name))
        value = relu(name)
    value = convolution(value, 'y', CHANNELS, 8)
    return onnx_file.model(nodes, weights, [('x', (1, 3, SIDE, SIDE))], [('y', (1, 8, SIDE, SIDE))])


def compiled(blocks, target, folder):
    path = os.path.join(folder, 'blocks%d.onnx' % blocks)
    artifact = path[:-5] + '.ingot'
    with open(path, 'wb') as file:
        file.write(network(blocks))
    report = json.loads(support.run(
        [support.INGOT, 'compile', path, '-o', artifact, '--target', target, '--unsigned',
         '--json']))['targets'][0]
    report['code'] = sum(len(section) for (kind, _, _), section in
                         artifact_file.sections(artifact).items() if kind == artifact_file.CODE)
    print('%2d blocks: %d nodes, %d kernels, %d calls of %d programs, code %d bytes, weights %d' % (
        blocks, report['nodes'], report['kernels'], report['calls'], report['programs'],
        report['code'], report['constant_bytes']))
    return report


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else 'x86-64-v3'
    folder = support.work_folder('blocks')
    one, many = (compiled(blocks, target, folder) for blocks in (1, BLOCKS))
    for what in ('code', 'code_bytes', 'programs'):
        if one[what] != many[what]:
            sys.exit('%s: %d with one block, %d with %d' % (what, one[what], many[what], BLOCKS))
    # Two convolutions a block.
    if many['calls'] < one['calls'] + 2 * (BLOCKS - 1):
        sys.exit('blocks were left out')
    weights = 4 * 2 * 9 * CHANNELS * CHANNELS
    if many['constant_bytes'] < one['constant_bytes'] + weights * (BLOCKS - 1):
        sys.exit('blocks share their weights')


if __name__ == '__main__':
    main()
