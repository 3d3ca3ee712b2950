#!/usr/bin/env python3
"""-O0 against -O2: both compiles of a model run the same seeded frames, each with its own states, and
all outputs and next states of every frame agree within the float policy (a share of the largest
magnitude; integers are equal, bytes may be one step off, which is counted).

Where a model compares floats, last bits choose between values that lie apart, as between two
neighbours that tie for a peak. As for the references that compile makes, such a model may be tried with
other inputs, but only if no more than one element in a thousand jumps; how often is printed.

usage: check_levels.py TARGET STEPS MODEL...      mnist, driving_policy-o17, ..., or all
example: check_levels.py x86-64-v3 3 silero_vad_v5

`all`: every shared and generated model that is there; those that are missing are named. A compile or
a frame that takes longer than INGOT_LEVELS_LIMIT seconds (default 600) is a failure.
"""
import os
import subprocess
import sys
import time

import model_cases
import onnx_file
import support
from replay import REPLAY

LIMIT = float(os.environ.get('INGOT_LEVELS_LIMIT', '600'))


COMPARING = {'ArgMax', 'ArgMin', 'Ceil', 'Equal', 'Floor', 'Greater', 'GreaterOrEqual', 'Less',
             'LessOrEqual', 'Round', 'Sign'}
MOST_SEEDS, BETWEEN_SEEDS = 12, 1000


class Differs(Exception):
    """`share`: of the elements, where values differ and nothing else does."""

    def __init__(self, text, share=1.0):
        super().__init__(text)
        self.share = share


def run(command):
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise Differs('took longer than %g s: %s' % (LIMIT, ' '.join(command)))
    if result.returncode != 0:
        raise Differs('exit code %d: %s\n%s' % (result.returncode, ' '.join(command),
                                                result.stdout))


class Side:
    """One compile of a model and the states that it has come to."""

    def __init__(self, model, target, level, folder):
        self.model = model
        self.folder = os.path.join(folder, 'O%d' % level)
        os.makedirs(self.folder)
        self.artifact = os.path.join(self.folder, 'model.ingot')
        self.before = None
        self.seconds = 0
        # The comparison below is the check.
        self.timed([support.INGOT, 'compile', model.path, '-o', self.artifact, '--target', target,
                    '-O%d' % level, '--check', 'off', '--unsigned', '--no-progress'] +
                   model.compile_arguments(self.folder))

    def timed(self, command):
        start = time.monotonic()
        run(command)
        self.seconds += time.monotonic() - start

    def frame(self, step, inputs):
        """The folder with all outputs and next states of this frame."""
        arguments = []
        for name, path in inputs.items():
            if self.before and any(pair.split('=')[1] == name for pair in self.model.feedback):
                path = os.path.join(self.before, support.file_name(name) + '.npy')
            arguments += ['--input', name + '=' + path]
        out = support.fresh_folder(os.path.join(self.folder, 'step%d' % step))
        self.timed([REPLAY, self.artifact, '--allow-unsigned', '--output-dir', out] + arguments)
        self.before = out
        return out


def compare(name, expected, found, tolerance):
    """(error as a share of the largest magnitude, bytes that are one step off)"""
    (shape, want), (got_shape, got) = support.npy(expected), support.npy(found)
    if shape != got_shape or want.typecode != got.typecode:
        raise Differs('%s: another shape or type' % name)
    if want.tobytes() == got.tobytes():
        return 0.0, 0
    if want.typecode not in 'fd':
        far = [i for i, (a, b) in enumerate(zip(got, want)) if abs(a - b) > 0]
        if want.typecode != 'B' or any(abs(got[i] - want[i]) > 1 for i in far):
            raise Differs('%s: element %d is %d and was %d' % (name, far[0], got[far[0]],
                                                               want[far[0]]))
        return 0.0, len(far)
    scale = max((abs(value) for value in want if value - value == 0), default=0)
    worst, far = 0.0, []
    for i, (a, b) in enumerate(zip(got, want)):
        if a == b or (a != a and b != b):
            continue
        error = abs(a - b)
        if error <= tolerance * scale:
            worst = max(worst, error / scale)
        else:
            far.append(i)
    if far:
        raise Differs('%s: element %d is %g and was %g; largest %g; %d of %d elements' % (
            name, far[0], got[far[0]], want[far[0]], scale, len(far), len(want)),
            len(far) / len(want))
    return worst, 0


def run_frames(model, plain, fast, steps, seed, folder):
    """(names of outputs, largest error, bytes that are one step off)"""
    outputs = set()
    plain.before = fast.before = None
    worst, off = 0.0, 0
    # Without a state every frame is like the first.
    for step in range(steps if model.feedback else 1):
        frame = support.fresh_folder(os.path.join(folder, 'in%d' % step))
        inputs = {spec['name']: model.input_file(spec, seed + step, frame) for spec in model.inputs()}
        expected, found = plain.frame(step, inputs), fast.frame(step, inputs)
        names = sorted(os.listdir(expected))
        if names != sorted(os.listdir(found)) or not names:
            raise Differs('step %d: other outputs' % step)
        for name in names:
            error, steps_off = compare('step %d, %s' % (step, name), os.path.join(expected, name),
                                       os.path.join(found, name), model.tolerance())
            worst, off = max(worst, error), off + steps_off
            outputs.add(name)
    return outputs, worst, off


def check(model, target, steps, folder):
    plain, fast = (Side(model, target, level, folder) for level in (0, 2))
    compares = not COMPARING.isdisjoint(onnx_file.operators(model.path))
    for attempt in range(MOST_SEEDS):
        try:
            outputs, worst, off = run_frames(model, plain, fast, steps,
                                             1 + attempt * BETWEEN_SEEDS, folder)
            break
        except Differs as problem:
            if not compares or problem.share > 1e-3 or attempt + 1 == MOST_SEEDS:
                raise
            print('%s: jumps with input %d: %s' % (model.title, attempt, problem), flush=True)
    least = {name for run in model.case['runs'] for name in run['outputs']}
    if len(outputs) < len(least):
        raise Differs('%d of %d outputs were compared' % (len(outputs), len(least)))
    return '%d outputs, error %.2g of %g%s; -O0 %.1f s, -O2 %.1f s' % (
        len(outputs), worst, model.tolerance(), ', %d bytes one step off' % off if off else '',
        plain.seconds, fast.seconds)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    target, steps, titles = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    if not support.cpu_runs(target):
        support.skip('this processor has less than ' + target)
    whole = titles == ['all']
    models = model_cases.all_models() if whole else [model_cases.find(t) for t in titles]
    if whole:
        missing = [model.title for model in models if not os.path.exists(model.path)]
        models = [model for model in models if os.path.exists(model.path)]
        if missing:
            print('left out, no file: ' + ' '.join(missing), flush=True)
    failed = []
    for number, model in enumerate(models, 1):
        folder = support.work_folder('levels-' + model.title)
        try:
            text = check(model, target, steps, folder)
        except Differs as problem:
            failed.append(model.title)
            text = 'FAIL: %s' % problem
        print('%d/%d %s: %s' % (number, len(models), model.title, text), flush=True)
        if whole:
            support.fresh_folder(folder)  # gigabytes of artifacts otherwise
    if failed:
        sys.exit('-O0 and -O2 differ: ' + ' '.join(failed))


if __name__ == '__main__':
    main()
