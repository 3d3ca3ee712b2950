#!/usr/bin/python3
"""Stands in for ingot with a fault: `compile` exchanges the operands of the node INGOT_FAULT, but if
INGOT_FAULT_NEEDS names another node, only where that is in the model too. The rest is INGOT_REAL's.
"""
import os
import sys

import onnx


def main():
    arguments = sys.argv[1:]
    if arguments and arguments[0] == 'compile':
        model = onnx.load(arguments[1])
        nodes = {node.name: node for node in model.graph.node}
        fault = nodes.get(os.environ['INGOT_FAULT'])
        if fault is not None and os.environ.get('INGOT_FAULT_NEEDS', fault.name) in nodes:
            operands = list(fault.input)[::-1]
            del fault.input[:]
            fault.input.extend(operands)
            arguments[1] += '.faulty.onnx'
            onnx.save(model, arguments[1])
    os.execv(os.environ['INGOT_REAL'], [os.environ['INGOT_REAL']] + arguments)


if __name__ == '__main__':
    main()
