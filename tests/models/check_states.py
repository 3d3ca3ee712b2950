#!/usr/bin/env python3
"""States that the artifact carries against states fed by hand: the model compiled twice, once with its
state pairs and once with states as plain inputs and outputs, over the same frames. All outputs of
every step must have the same bytes.

usage: check_states.py TARGET STEPS MODEL...
example: check_states.py x86-64-v3 6 silero_vad_v5
"""
import os
import sys

import model_cases
import support


def compile_model(model, target, folder, name, carried):
    artifact = os.path.join(folder, name + '.ingot')
    arguments = model.compile_arguments(folder)
    if not carried:
        for pair in model.feedback:
            at = arguments.index(pair)
            del arguments[at - 1:at + 1]
    support.run([support.INGOT, 'compile', model.path, '-o', artifact, '--target', target,
                 '--unsigned', '--no-progress'] + arguments)
    return artifact


def run_by_hand(model, artifact, steps, sequence, folder):
    os.makedirs(folder)
    states = {}
    for spec in model.inputs():
        if model.is_state(spec):
            path = os.path.join(folder, 'start_' + support.file_name(spec['name']) + '.npy')
            size = support.count_of(spec['shape']) * int(support.DESCR[spec['dtype']][2:])
            support.write_npy(path, support.DESCR[spec['dtype']], spec['shape'], bytes(size))
            states[spec['name']] = path
    for step in range(steps):
        frame = os.path.join(sequence, '%04d' % step)
        out = support.fresh_folder(os.path.join(folder, '%04d' % step))
        command = [support.INGOT, 'run', artifact, '--allow-unsigned', '--output-dir', out]
        for spec in model.inputs():
            plain = os.path.join(frame, support.file_name(spec['name']) + '.npy')
            command += ['--input', spec['name'] + '=' + states.get(spec['name'], plain)]
        support.run(command)
        for pair in model.feedback:
            output, state = pair.split('=')
            states[state] = os.path.join(out, support.file_name(output) + '.npy')


def compare(model, steps, carried, by_hand):
    compared = 0
    for step in range(steps):
        frame = os.path.join(carried, '%04d' % step)
        for name in sorted(os.listdir(frame)):
            with open(os.path.join(frame, name), 'rb') as a:
                with open(os.path.join(by_hand, '%04d' % step, name), 'rb') as b:
                    if a.read() != b.read():
                        sys.exit('%s, step %d: %s differs' % (model.title, step, name))
            compared += 1
    if compared < steps:
        sys.exit('%s: no output to compare' % model.title)
    print('%s: %d outputs of %d steps equal, states %s' % (
        model.title, compared, steps, ', '.join(p.split('=')[1] for p in model.feedback)))


def main():
    target, steps, titles = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    if not support.cpu_runs(target):
        support.skip('this processor has less than ' + target)
    for title in titles:
        model = model_cases.find(title)
        if not model.feedback:
            sys.exit('%s has no state' % title)
        folder = support.work_folder('states-' + model.title)
        sequence = os.path.join(folder, 'frames')
        model_cases.write_frames(model, steps, sequence)
        carried = compile_model(model, target, folder, 'carried', True)
        plain = compile_model(model, target, folder, 'plain', False)
        out = os.path.join(folder, 'out')
        support.run([support.INGOT, 'run', carried, '--allow-unsigned', '--sequence', sequence,
                     '--output-dir', out])
        by_hand = os.path.join(folder, 'by-hand')
        run_by_hand(model, plain, steps, sequence, by_hand)
        compare(model, steps, out, by_hand)


main()
