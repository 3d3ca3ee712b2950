"""Whole models of the shared set: the files themselves, and the zoo that its make_models.py writes.

Standard library only. INGOT_ZOO: the folder of the generated models (default: build/zoo).
"""
import json
import math
import os
import shutil

import onnx_file
import support

ZOO = os.environ.get('INGOT_ZOO', os.path.join(support.ROOT, 'build', 'zoo'))

# Of the largest expected magnitude.
FLOAT32, FLOAT16, QUANTIZED = 1e-4, 2e-2, 8e-3


class Model:
    """One file with its case: title (resnet18-o17, mnist), path, and the folder of its golden."""

    def __init__(self, case, folder, path, variant=''):
        self.case = case
        self.folder = folder
        self.path = path
        self.variant = variant
        self.name = case['name']
        self.title = self.name + ('-' + variant if variant else '')
        self.feedback = case.get('feedback') or []
        self.bound = case.get('bind') or []

    def kind(self):
        """float32, float16, quantized: what is judged together. Of a model's variants in float32
        one counts, the rest is `other`; the product of one row stands for itself (`mlp`)."""
        if self.variant == 'fp16':
            return 'mlp' if self.name == 'mlp' else 'float16'
        if self.name == 'mlp':
            return 'other'
        if self.name.startswith('quant'):
            return 'quantized'
        counted = 'o17' if 'o17' in self.case.get('variants', []) else 'o13'
        return 'float32' if self.variant in ('', counted) else 'other'

    def tolerance(self):
        if self.variant == 'fp16':
            return FLOAT16
        return QUANTIZED if self.name.startswith('quant') else FLOAT32

    def is_convolutional(self):
        operators = onnx_file.operators(self.path)
        products = operators.count('MatMul') + operators.count('Gemm')
        return operators.count('Conv') > products

    def compile_arguments(self, folder):
        """Shapes, states, and bound inputs, whose values are written to `folder`."""
        arguments = (self.case.get('shape_args') or '').split()
        if self.variant == 'dyn':
            for spec in self.case['inputs']:
                arguments += ['--shape', spec['name'] + '=' + 'x'.join(map(str, spec['shape']))]
        for spec in self.case['inputs']:
            if spec['name'] in self.bound:
                arguments += ['--bind', spec['name'] + '=' + self.input_file(spec, 1, folder)]
        for pair in self.feedback:
            arguments += ['--state', pair]
        return arguments

    def inputs(self):
        """Those that the artifact still has, states among them."""
        return [spec for spec in self.case['inputs'] if spec['name'] not in self.bound]

    def is_state(self, spec):
        return any(pair.split('=')[1] == spec['name'] for pair in self.feedback)

    def input_file(self, spec, seed, folder):
        """A .npy of an input: stored, or generated into `folder`."""
        if 'file' in spec:
            return os.path.join(self.folder, spec['file'])
        path = os.path.join(folder, support.file_name(spec['name']) + '.npy')
        values = support.generated(spec['name'], spec['shape'], spec['lo'], spec['hi'], seed,
                                   spec['dtype'])
        support.write_npy(path, support.DESCR[spec['dtype']], spec['shape'], values.tobytes())
        return path


def worst_error(outputs):
    """Of the rows of `ingot check --json`: the largest error as a multiple of what is allowed;
    infinite where it is not a number."""
    worst = 0.0
    for output in outputs:
        error, allowed = float(output['max_abs_error']), float(output['allowed'])
        if error != 0:
            times = error / allowed if allowed > 0 else math.inf
            worst = max(worst, times if times == times else math.inf)
    return worst


def real_models():
    folder = support.need_shared('models')
    with open(os.path.join(folder, 'cases.json')) as file:
        return [Model(case, folder, os.path.join(folder, case['model'])) for case in json.load(file)]


def zoo_models(zoo=ZOO):
    folder = support.need_shared('models', 'zoo')
    with open(os.path.join(folder, 'cases.json')) as file:
        return [Model(case, folder, os.path.join(zoo, case['model'].replace('VARIANT', variant)),
                      variant)
                for case in json.load(file) for variant in case['variants']]


def mlp_models(zoo, folder):
    """The residual product of one row. Nobody stored its outputs: `folder` is where the caller puts
    them (mlp/y.npy), and gets the cases.json here."""
    case = {'name': 'mlp', 'model': 'mlp-VARIANT.onnx', 'variants': ['o17', 'fp16'],
            'inputs': [{'name': 'x', 'dtype': 'float32', 'shape': [1, 1024], 'lo': -1, 'hi': 1}],
            'runs': [{'seed': 1, 'steps': 1, 'outputs': {'y': {
                'file': 'mlp/y.npy', 'dtype': 'float32', 'shape': [1, 1000]}}}]}
    with open(os.path.join(folder, 'cases.json'), 'w') as file:
        json.dump([case], file)
    return [Model(case, folder, os.path.join(zoo, 'mlp-%s.onnx' % variant), variant)
            for variant in case['variants']]


def all_models():
    """Every variant of every model, whether its file is there or not."""
    return real_models() + zoo_models() + mlp_models(ZOO, support.work_folder('mlp-case'))


def find(title):
    for model in real_models() + zoo_models():
        if model.title == title:
            return model
    raise SystemExit('no model %s in the shared set' % title)


def write_frames(model, steps, folder):
    """Folders 0000, 0001, ... with the inputs that are no states, each step with its own seed."""
    for step in range(steps):
        frame = support.fresh_folder(os.path.join(folder, '%04d' % step))
        for spec in model.inputs():
            if not model.is_state(spec):
                made = model.input_file(spec, 1 + step, frame)
                if os.path.dirname(made) != frame:
                    shutil.copy(made, os.path.join(frame, support.file_name(spec['name']) + '.npy'))
