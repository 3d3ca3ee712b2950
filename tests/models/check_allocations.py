#!/usr/bin/env python3
"""A frame allocates nothing: a thousand frames need as many allocations as one.

usage: check_allocations.py
"""
import os
import sys

import replay
import support
from check_determinism import tiny_pipeline


def main():
    folder = support.work_folder('allocations')
    artifact = os.path.join(folder, 'tiny.ingot')
    support.run([support.INGOT, 'compile', tiny_pipeline(folder), '-o', artifact, '--unsigned',
                 '--no-progress'])
    inputs = replay.inputs_of(artifact, folder)
    one = replay.run(artifact, inputs, 1, count=True)['allocations']
    many = replay.run(artifact, inputs, 1001, count=True)['allocations']
    print('allocations: %d with one frame, %d with 1001' % (one, many))
    return 0 if one == many and one > 0 else 1


if __name__ == '__main__':
    sys.exit(main())
