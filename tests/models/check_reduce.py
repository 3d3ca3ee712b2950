#!/usr/bin/python3
"""scripts/reduce finds a fault that was put into one node, one that needs its neighbour, and none where
there is none. The values of all tensors are computed here, with numpy.

usage: check_reduce.py
"""
import os
import subprocess
import sys

import support

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    support.skip('no python3-numpy and python3-onnx: scripts/install_packages nightly')

FAULTY = os.path.join(support.ROOT, 'tests', 'models', 'faulty_ingot.py')
REDUCE = os.path.join(support.ROOT, 'scripts', 'reduce')


def numbers(name, *shape):
    return np.array(support.generated(name, shape, -1, 1, 1), np.float32).reshape(shape)


def make(folder):
    """The model, and DIR/NAME.npy of all its values."""
    weights = {'w': numbers('w', 12, 8), 'offset': numbers('offset', 8), 'row': numbers('row', 1, 8)}
    x = numbers('in:0', 6, 12)
    values = {'in:0': x}
    values['net/product'] = x @ weights['w']
    values['net/bent'] = np.maximum(values['net/product'], 0)
    values['next_one'] = weights['offset'] - values['net/bent']
    values['turned'] = values['next_one'].T.copy()
    values['back'] = values['turned'].T.copy()
    values['share'] = values['back'] / (2 + weights['row'])
    values['sum'] = values['share'] + values['net/bent']
    nodes = [
        helper.make_node('MatMul', ['in:0', 'w'], ['net/product'], 'product'),
        helper.make_node('Relu', ['net/product'], ['net/bent'], 'bent'),
        helper.make_node('Sub', ['offset', 'net/bent'], ['next_one'], 'difference'),
        helper.make_node('Transpose', ['next_one'], ['turned'], 'turn', perm=[1, 0]),
        helper.make_node('Transpose', ['turned'], ['back'], 'turn_back', perm=[1, 0]),
        helper.make_node('Div', ['back', 'divisor'], ['share'], 'share'),
        helper.make_node('Add', ['share', 'net/bent'], ['sum'], 'sum')]
    constants = {'w': weights['w'], 'offset': weights['offset'], 'divisor': 2 + weights['row']}
    graph = helper.make_graph(
        nodes, 'faults',
        [helper.make_tensor_value_info('in:0', TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info('sum', TensorProto.FLOAT, values['sum'].shape)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)])
    model.ir_version = 7
    path = os.path.join(folder, 'model.onnx')
    onnx.save(model, path)
    for name, value in values.items():
        np.save(os.path.join(folder, support.file_name(name) + '.npy'), value.astype(np.float32))
    return path


def reduce(folder, fault, needs=None, target='x86-64-v2'):
    """(exit code, names of the nodes of the small model)"""
    small = os.path.join(folder, 'small.onnx')
    env = dict(os.environ, INGOT=FAULTY, INGOT_REAL=support.INGOT, INGOT_FAULT=fault)
    if needs:
        env['INGOT_FAULT_NEEDS'] = needs
    result = subprocess.run([REDUCE, os.path.join(folder, 'model.onnx'), '--golden', folder,
                             '--target', target, '-o', small], env=env, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)
    print(result.stdout)
    if result.returncode != 0:
        return result.returncode, []
    return 0, [node.name for node in onnx.load(small).graph.node]


def check_written(folder):
    """The unharmed tool agrees with what was written."""
    artifact, small = os.path.join(folder, 'small.ingot'), os.path.join(folder, 'small.onnx')
    support.run([support.INGOT, 'compile', small, '-o', artifact, '--target', 'x86-64-v2',
                 '--unsigned', '--no-progress'])
    support.run([support.INGOT, 'check', artifact, '--golden', small + '.golden',
                 '--allow-unsigned'])


def main():
    folder = support.work_folder('reduce')
    make(folder)
    cases = (('difference', None, (0, ['difference'])),
             ('share', None, (0, ['share'])),
             ('share', 'turn', (0, ['turn', 'share'])),
             ('no such node', None, (1, [])))
    for fault, needs, expected in cases:
        found = reduce(folder, fault, needs)
        if found != expected:
            sys.exit('fault in %s with %s: found %s, expected %s' % (fault, needs, found, expected))
        if found[0] == 0:
            check_written(folder)
    print('%d faults found' % (len(cases) - 1))


if __name__ == '__main__':
    main()
