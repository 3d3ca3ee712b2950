#!/usr/bin/env python3
"""The golden `output_slices`: of an accepted one every slice leaves the artifact as it should, by its
name in a pipeline; of a rejected one nothing is compiled.

usage: check_slices.py TARGET     x86-64-v2, -v3, -v4 here; aarch64 under qemu
"""
import json
import os
import subprocess
import sys

import onnx_file
import sequence
import shifting
import support


def write_source(case, folder):
    """A model that passes its input on, and a pipeline with an output for each slice."""
    shape = (1, case['output_width'])
    model = onnx_file.model([onnx_file.node('Neg', ['x'], 'n'), onnx_file.node('Neg', ['n'], 'y')],
                            [], [('x', shape)], [('y', shape)])
    model += onnx_file.text(14, onnx_file.text(1, 'output_slices') +
                            onnx_file.text(2, case['base64']))
    with open(os.path.join(folder, 'model.onnx'), 'wb') as file:
        file.write(model)
    stages = [{'id': 'm', 'model': 'model.onnx'}]
    for name in case.get('slices', {}):
        stages.append({'id': 'q_' + name, 'queue': 'm.y[%s]' % name, 'samples': 1, 'concat': 1})
    outputs = {'out_' + name: 'q_' + name for name in case.get('slices', {})}
    source = os.path.join(folder, 'pipeline.json')
    with open(source, 'w') as file:
        json.dump({'format': 'ingot-pipeline/1', 'name': 'slices', 'stages': stages,
                   'outputs': outputs or {'y': 'm.y'}}, file)
    return source


def check_rejected(case, source, folder):
    result = subprocess.run(
        [support.INGOT, 'compile', source, '-o', os.path.join(folder, 'a.ingot'), '--unsigned',
         '--no-progress'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 3:
        sys.exit('%s (%s): exit %d\n%s' % (case['id'], case['why'], result.returncode,
                                           result.stdout))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = sys.argv[1]
    with open(support.need_shared('golden', 'metadata', 'output_slices.json')) as file:
        cases = json.load(file)['cases']
    compared = rejected = 0
    for case in cases:
        folder = support.work_folder(os.path.join('slices-' + target, case['id']))
        source = write_source(case, folder)
        if case['expect'] == 'reject':
            check_rejected(case, source, folder)
            rejected += 1
            continue
        values = [float(i) for i in range(1, case['output_width'] + 1)]
        sizes = {'out_' + name: 4 * (stop - start) for name, (start, stop) in case['slices'].items()}
        artifact = sequence.Artifact(source, target, folder)
        (_, outputs), = artifact.run([{'x': shifting.pack('f32', values)}], sizes)
        for name, (start, stop) in case['slices'].items():
            if outputs['out_' + name] != shifting.pack('f32', values[start:stop]):
                sys.exit('%s: other values in %s' % (case['id'], name))
            compared += 1
    if compared == 0 or rejected == 0:
        sys.exit('nothing was compared')
    print('%s: %d slices equal, %d rejected' % (target, compared, rejected))


if __name__ == '__main__':
    main()
