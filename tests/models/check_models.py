#!/usr/bin/env python3
"""Compiles one model of the shared set for one target and compares it with the stored outputs.

usage: check_models.py MODEL TARGET

x86-64 targets go through `ingot check`; aarch64 through ingot_replay under qemu.
"""
import json
import os
import sys

import support

TOLERANCE = 1e-4  # of the largest expected magnitude, float32


def compile_model(case, target, folder):
    artifact = os.path.join(folder, case['name'] + '.ingot')
    support.run([support.INGOT, 'compile', os.path.join(support.SHARED, 'models', case['model']),
                 '-o', artifact, '--target', target, '--unsigned', '--no-progress'] +
                case['shape_args'].split())
    return artifact


def check_with_tool(case, artifact):
    golden = os.path.join(support.SHARED, 'models')
    print(support.run([support.INGOT, 'check', artifact, '--golden', golden, '--tolerance',
                       str(TOLERANCE), '--allow-unsigned']))


def replay(case, run, artifact, folder):
    inputs = []
    for spec in case['inputs']:
        path = os.path.join(folder, support.file_name(spec['name']) + '.npy')
        if 'file' in spec:
            path = os.path.join(support.SHARED, 'models', spec['file'])
        else:
            values = support.generated(spec['name'], spec['shape'], spec['lo'], spec['hi'],
                                       run['seed'])
            support.write_npy(path, '<f4', spec['shape'], values.tobytes())
        inputs += ['--input', spec['name'] + '=' + path]
    out = os.path.join(folder, 'out')
    os.makedirs(out, exist_ok=True)
    support.run(support.qemu_aarch64([support.REPLAY_AARCH64, artifact, '--allow-unsigned',
                                      '--output-dir', out] + inputs))
    worst = 0
    for name, expected in run['outputs'].items():
        shape, want = support.npy(os.path.join(support.SHARED, 'models', expected['file']))
        got_shape, got = support.npy(os.path.join(out, support.file_name(name) + '.npy'))
        if shape != got_shape:
            sys.exit('%s: shape %s, expected %s' % (name, got_shape, shape))
        scale = max(abs(value) for value in want)
        error = max(abs(a - b) for a, b in zip(got, want))
        print('seed %d %s: max error %.3g of %.3g' % (run['seed'], name, error, scale))
        if not error <= TOLERANCE * scale:  # NaN fails too
            sys.exit('%s: outside tolerance' % name)
        worst = max(worst, error / scale)
    return worst


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    name, target = sys.argv[1:]
    with open(support.need_shared('models', 'cases.json')) as file:
        case = next(case for case in json.load(file) if case['name'] == name)
    if target != 'aarch64' and not support.cpu_runs(target):
        support.skip('this processor has not all of ' + target)
    folder = support.work_folder('models-%s-%s' % (name, target))
    artifact = compile_model(case, target, folder)
    if target != 'aarch64':
        check_with_tool(case, artifact)
        return
    for run in case['runs']:
        if run['steps'] == 1:
            replay(case, run, artifact, folder)


if __name__ == '__main__':
    main()
