#!/usr/bin/env python3
"""The same compile gives the same bytes, whatever the folder, the number of workers, the locale, the
time zone, and the processor the compiler itself runs on.

usage: check_determinism.py                  a warp and a small model, everywhere
       check_determinism.py MODEL... | all   whole models, with one, two and five workers
"""
import hashlib
import json
import os
import shutil
import sys

import model_cases
import support

MASKED = '-AVX2,-AVX,-FMA,-FMA4,-AVX512F,-AVX512VL,-AVX512DQ,-AVX512BW,-AVX512CD,-ERMS,-BMI2'


def digest(path):
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).hexdigest()


def tiny_pipeline(folder):
    """A road warp of a small picture: float arithmetic, integer index arithmetic, no weights."""
    camera = {'format': 'ingot-camera/1', 'name': 'tiny', 'pixel_format': 'nv12', 'width': 64,
              'height': 48, 'stride': 80, 'y_height': 56, 'uv_height': 28, 'size': 6720}
    stage = {'id': 'picture', 'warp': 'road', 'frame': 'frame', 'transform': 'tfm',
             'size': [32, 16]}
    pipeline = {'format': 'ingot-pipeline/1', 'name': 'tiny', 'cameras': ['camera.json'],
                'frames': ['frame'], 'stages': [stage], 'outputs': {'image': 'picture'}}
    for name, content in (('pipeline.json', pipeline), ('camera.json', camera)):
        with open(os.path.join(folder, name), 'w') as file:
            json.dump(content, file)
    return os.path.join(folder, 'pipeline.json')


class Comparison:
    def __init__(self, name, source, arguments):
        self.name = name
        self.source = source
        self.arguments = arguments
        self.folder = support.work_folder('determinism-' + name)
        self.expected = None

    def compile(self, what, prefix=(), environment=None, options=(), cwd=None, source=None):
        out = os.path.join(self.folder, 'out.ingot')
        env = dict(os.environ)
        env.update(environment or {})
        support.run(list(prefix) + [support.INGOT, 'compile', source or self.source, '-o', out,
                                    '--unsigned', '--no-progress'] + self.arguments +
                    list(options), env=env, cwd=cwd)
        got = digest(out)
        if self.expected is None:
            self.expected = got
        print('%s %s: %s' % (self.name, what, got))
        if got != self.expected:
            sys.exit('%s: other bytes with %s' % (self.name, what))

    def compile_everywhere(self):
        self.compile('one worker', options=['-j', '1'])
        self.compile('two workers', options=['-j', '2'])
        other = os.path.join(self.folder, 'another folder')
        shutil.copytree(os.path.dirname(self.source), other)
        self.compile('another folder', cwd=other, source=os.path.basename(self.source))
        self.compile('another locale and time zone',
                     environment={'LC_ALL': 'C.UTF-8', 'LANG': 'de_DE.UTF-8',
                                  'TZ': 'Asia/Kolkata'})
        self.compile('masked libm', environment={'GLIBC_TUNABLES': 'glibc.cpu.hwcaps=' + MASKED})


def compile_with_workers(model):
    folder = support.work_folder('determinism-arguments')
    comparison = Comparison(model.title, model.path,
                            ['--target', 'x86-64-v3'] + model.compile_arguments(folder))
    for count in ('1', '2', '5'):
        comparison.compile(count + ' workers', options=['-j', count])
    support.fresh_folder(comparison.folder)


def main():
    if len(sys.argv) > 1:
        titles = sys.argv[1:]
        models = model_cases.all_models() if titles == ['all'] else \
            [model_cases.find(title) for title in titles]
        for model in models:
            if titles == ['all'] and not os.path.exists(model.path):
                print('%s: left out, no file' % model.title)
            else:
                compile_with_workers(model)
        return
    folder = support.work_folder('determinism-sources')
    warp = Comparison('warp', tiny_pipeline(folder), ['--target', 'x86-64-v3', '--target', 'aarch64'])
    warp.compile_everywhere()
    if shutil.which('qemu-x86_64') is None:
        sys.exit('qemu-x86_64 is missing: scripts/install_packages test')
    warp.compile('the compiler on a Nehalem', prefix=['qemu-x86_64', '-cpu', 'Nehalem'])

    model = os.path.join(folder, 'mnist')
    os.makedirs(model)
    shutil.copy(support.need_shared('models', 'files', 'mnist.onnx'), model)
    mnist = Comparison('mnist', os.path.join(model, 'mnist.onnx'),
                       ['--target', 'x86-64-v2', '--target', 'x86-64-v3'])
    mnist.compile_everywhere()
    mnist.compile('the compiler on a Nehalem', prefix=['qemu-x86_64', '-cpu', 'Nehalem'])


if __name__ == '__main__':
    main()
