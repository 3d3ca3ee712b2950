#!/usr/bin/env python3
"""The golden histories, as queues of one artifact: every sampled value.

usage: check_history.py TARGET     x86-64-v2, -v3, -v4 here; aarch64 under qemu
"""
import json
import os
import sys

import sequence
import shifting
import support


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = sys.argv[1]
    with open(support.need_shared('golden', 'history', 'cases.json')) as file:
        cases = json.load(file)['cases']
    folder = support.work_folder('history-' + target)
    pipeline = {'format': 'ingot-pipeline/1', 'name': 'history', 'inputs': {}, 'stages': [],
                'outputs': {}}
    for case in cases:
        entry = list(case['shape'])
        entry[case['axis']] = case['size']
        pipeline['inputs']['in_' + case['id']] = {'dtype': 'f32', 'shape': entry}
        pipeline['stages'].append({
            'id': case['id'], 'queue': 'in_' + case['id'], 'concat': case['axis'],
            'samples': case['shape'][case['axis']] // case['size'], 'stride': case['stride'],
            'delay': case['delay'], 'pool': 'max' if case['reduce'] == 'max' else 'none'})
        pipeline['outputs']['out_' + case['id']] = case['id']
    source = os.path.join(folder, 'pipeline.json')
    with open(source, 'w') as file:
        json.dump(pipeline, file)
    frames = []
    for number in range(max(len(case['values']) for case in cases)):
        frames.append({'in_' + case['id']: shifting.pack(
            'f32', case['values'][min(number, len(case['values']) - 1)]) for case in cases})
    sizes = {'out_' + case['id']: 4 * shifting.count_of(case['shape']) for case in cases}
    artifact = sequence.Artifact(source, target, folder)
    compared = 0
    for number, (accepted, outputs) in enumerate(artifact.run(frames, sizes)):
        if not accepted:
            sys.exit('frame %d was not accepted' % number)
        for case in cases:
            if number >= len(case['values']):
                continue
            if outputs['out_' + case['id']] != shifting.pack('f32', case['outputs'][number]):
                sys.exit('%s, frame %d: other values' % (case['id'], number))
            compared += 1
    if compared != sum(len(case['outputs']) for case in cases):
        sys.exit('only %d outputs were compared' % compared)
    print('%s: %d queues, %d outputs equal' % (target, len(cases), compared))


if __name__ == '__main__':
    main()
