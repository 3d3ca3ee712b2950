#!/usr/bin/env python3
"""The same bytes for every number of threads: three frames of each model on 1 to 4 threads, states
carried. For aarch64 by ingot_replay under qemu, which writes the outputs of the last frame.

usage: check_workers.py TARGET MODEL...
example: check_workers.py x86-64-v3 mnist silero_vad_v5
"""
import os
import sys

import model_cases
import support

STEPS = 3


def contents(folder):
    files = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with open(path, 'rb') as file:
                files[os.path.relpath(path, folder)] = file.read()
    return files


def run(model, target, artifact, folder, threads):
    out = support.fresh_folder(os.path.join(folder, 'out%d' % threads))
    common = [artifact, '--allow-unsigned', '--output-dir', out, '--threads', str(threads)]
    if target != 'aarch64':
        support.run([support.INGOT, 'run', '--sequence', os.path.join(folder, 'frames')] + common)
        return contents(out)
    inputs = []
    for spec in model.inputs():
        if not model.is_state(spec):
            inputs += ['--input', spec['name'] + '=' + model.input_file(spec, 1, folder)]
    support.run(support.qemu_aarch64([support.REPLAY_AARCH64] + common + inputs +
                                     ['--frames', str(STEPS)]))
    return contents(out)


def main():
    target, titles = sys.argv[1], sys.argv[2:]
    if target != 'aarch64' and not support.cpu_runs(target):
        support.skip('this processor has less than ' + target)
    for title in titles:
        model = model_cases.find(title)
        folder = support.work_folder('workers-%s-%s' % (model.title, target))
        artifact = os.path.join(folder, 'model.ingot')
        support.run([support.INGOT, 'compile', model.path, '-o', artifact, '--target', target,
                     '--unsigned', '--no-progress', '--check', 'off'] +
                    model.compile_arguments(folder))
        model_cases.write_frames(model, STEPS, os.path.join(folder, 'frames'))
        one = run(model, target, artifact, folder, 1)
        if not one:
            sys.exit('%s: no output to compare' % model.title)
        for threads in (2, 3, 4):
            if run(model, target, artifact, folder, threads) != one:
                sys.exit('%s: %d threads give other bytes than one' % (model.title, threads))
        print('%s: %d files equal for 1 to 4 threads' % (model.title, len(one)))


main()
