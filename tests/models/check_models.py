#!/usr/bin/env python3
"""Compiles whole models of the shared set for one target and compares them with the stored outputs.

usage: check_models.py TARGET MODEL...      mnist, driving_policy-o17, ...

x86-64 targets go through `ingot check`; aarch64 through ingot_replay under qemu, a process for each
step.
"""
import os
import sys

import model_cases
import support


def compile_model(model, target, folder):
    artifact = os.path.join(folder, model.title + '.ingot')
    support.run([support.INGOT, 'compile', model.path, '-o', artifact, '--target', target,
                 '--unsigned', '--no-progress'] + model.compile_arguments(folder))
    return artifact


def check_with_tool(model, artifact):
    print(support.run([support.INGOT, 'check', artifact, '--golden', model.folder, '--case',
                       model.name, '--tolerance', str(model.tolerance()), '--allow-unsigned']))


def replay(model, run, artifact, folder):
    """The steps of a run; the folder of the last one's outputs and states."""
    before = None
    for step in range(run['steps']):
        inputs = []
        for spec in model.inputs():
            path = model.input_file(spec, run['seed'] + step, folder)
            if before and model.is_state(spec):
                path = os.path.join(before, support.file_name(spec['name']) + '.npy')
            inputs += ['--input', spec['name'] + '=' + path]
        out = support.fresh_folder(os.path.join(folder, 'step%d' % step))
        support.run(support.qemu_aarch64([support.REPLAY_AARCH64, artifact, '--allow-unsigned',
                                          '--output-dir', out] + inputs))
        before = out
    return before


def compare(model, run, out):
    for name, expected in run['outputs'].items():
        path = os.path.join(out, support.file_name(name) + '.npy')
        if not os.path.exists(path):  # an output that became a state is stored as that
            state = next(pair.split('=')[1] for pair in model.feedback
                         if pair.split('=')[0] == name)
            path = os.path.join(out, support.file_name(state) + '.npy')
        shape, want = support.npy(os.path.join(model.folder, expected['file']))
        got_shape, got = support.npy(path)
        if shape != got_shape:
            sys.exit('%s: shape %s, expected %s' % (name, got_shape, shape))
        scale = max(abs(value) for value in want)
        if any(value != value for value in got):
            sys.exit('%s: not a number' % name)
        error = max(abs(a - b) for a, b in zip(got, want))
        print('%s, seed %d, %d steps, %s: max error %.3g of %.3g' % (
            model.title, run['seed'], run['steps'], name, error, scale))
        if error > model.tolerance() * scale:
            sys.exit('%s: outside tolerance' % name)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    target, titles = sys.argv[1], sys.argv[2:]
    models = [model_cases.find(title) for title in titles]
    if target != 'aarch64' and not support.cpu_runs(target):
        support.skip('this processor has not all of ' + target)
    for model in models:
        folder = support.work_folder('models-%s-%s' % (model.title, target))
        artifact = compile_model(model, target, folder)
        if target != 'aarch64':
            check_with_tool(model, artifact)
            continue
        for run in model.case['runs']:
            compare(model, run, replay(model, run, artifact, folder))


if __name__ == '__main__':
    main()
