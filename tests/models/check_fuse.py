#!/usr/bin/env python3
"""The driving sample in one go, packed, and fused of prebuilt parts: the same bytes.

usage: check_fuse.py TARGET FRAMES     pictures of moving matrices, for both cameras of the sample
"""
import json
import os
import shutil
import struct
import sys

import support

SAMPLE = os.path.join(support.ROOT, 'samples', 'driving')
WARP_STAGES = ('new_img', 'new_big', 'img', 'big_img')


def write_json(path, content):
    with open(path, 'w') as file:
        json.dump(content, file, indent=1)


def compile_source(source, output, target):
    support.run([support.INGOT, 'compile', source, '-o', output, '--target', target, '--unsigned',
                 '--no-progress', '--check', 'off'])


def frame_size(camera):
    with open(os.path.join(SAMPLE, 'cameras', camera + '.json')) as file:
        return json.load(file)['size']


def write_frames(folder, camera, count):
    """Bytes of a ramp that moves, and a perspective that moves with it."""
    size = frame_size(camera)
    period = bytes((167 * i + 13 * (i // 256) + 11) % 256 for i in range(65536 + count))
    for number in range(count):
        frame = os.path.join(folder, '%04d' % number)
        os.makedirs(frame)
        for name, shift in (('frame', number), ('big_frame', 3 * number)):
            pattern = period[shift:shift + 65536]
            with open(os.path.join(frame, name + '.bin'), 'wb') as file:
                file.write((pattern * (size // len(pattern) + 1))[:size])
        for name, zoom in (('tfm', 1.7), ('big_tfm', 1.2)):
            matrix = [zoom, 0.01, 40 + 3 * number, -0.01, zoom, 20 + number, 1e-5 * number, 0, 1]
            with open(os.path.join(frame, name + '.bin'), 'wb') as file:
                file.write(struct.pack('<9f', *matrix))
        for name, values in (('desire', 8), ('traffic_convention', 2)):
            with open(os.path.join(frame, name + '.bin'), 'wb') as file:
                file.write(struct.pack('<%df' % values,
                                       *[float((number + i) % 3 == 0) for i in range(values)]))


def run_frames(artifact, frames, output, camera):
    support.run([support.INGOT, 'run', artifact, '--sequence', frames, '--output-dir', output,
                 '--camera', camera, '--allow-unsigned'])


def contents_of(folder):
    found = {}
    for root, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(root, name)
            with open(path, 'rb') as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


def keep_inputs(frames, names):
    for number in os.listdir(frames):
        for name in os.listdir(os.path.join(frames, number)):
            if os.path.splitext(name)[0] not in names:
                os.remove(os.path.join(frames, number, name))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    target, count = sys.argv[1], int(sys.argv[2])
    folder = support.work_folder('fuse-' + target)
    source = os.path.join(folder, 'sample')
    shutil.copytree(SAMPLE, source, ignore=shutil.ignore_patterns('*.cpp', '*.h'))
    support.run([os.path.join(os.path.dirname(support.INGOT), 'make_driving_model'), source])
    with open(os.path.join(source, 'pipeline.json')) as file:
        whole = json.load(file)

    # Vision alone: a model whose two image inputs come from warps and queues.
    vision = dict(whole)
    vision['name'] = 'vision'
    vision['stages'] = [s for s in whole['stages'] if s['id'] in WARP_STAGES + ('vision',)]
    vision['outputs'] = {'outputs': 'vision.outputs'}
    vision.pop('inputs')
    warp = dict(vision)
    warp['name'] = 'warp'
    warp['stages'] = [s for s in whole['stages'] if s['id'] in WARP_STAGES]
    warp['outputs'] = {'img': 'img', 'big_img': 'big_img'}
    sources = {'whole': whole, 'vision': vision, 'warp': warp}
    for name in ('whole', 'vision'):
        sources[name + '-packed'] = dict(sources[name], frame_binding='packed')
    artifacts = {}
    for name, content in sources.items():
        write_json(os.path.join(source, name + '.json'), content)
        artifacts[name] = os.path.join(folder, name + '.ingot')
        compile_source(os.path.join(source, name + '.json'), artifacts[name], target)
    model = os.path.join(folder, 'model.ingot')
    compile_source(os.path.join(source, 'driving_vision.onnx'), model, target)
    for name, options in (('fused', []), ('fused-packed', ['--packed'])):
        artifacts[name] = os.path.join(folder, name + '.ingot')
        support.run([support.INGOT, 'fuse', model, artifacts['warp'], '-o', artifacts[name],
                     '--unsigned', '--allow-unsigned'] + options)

    failures = 0
    for camera in ('ox03c10', 'os04c10-half'):
        frames = os.path.join(folder, 'frames-' + camera)
        write_frames(frames, camera, count)
        results = {}
        groups = (('whole', 'whole-packed'), ('vision', 'vision-packed', 'fused', 'fused-packed'))
        for group in groups:
            if group[0] == 'vision':
                keep_inputs(frames, ('frame', 'big_frame', 'tfm', 'big_tfm'))
            for name in group:
                output = os.path.join(folder, 'out-%s-%s' % (name, camera))
                run_frames(artifacts[name], frames, output, camera)
                results[name] = contents_of(output)
            for name in group[1:]:
                same = results[name] == results[group[0]]
                failures += not same
                print('%-13s %s, %d frames: %s' % (camera, name, count,
                                                   'as in one go' if same else 'DIFFERS'))
        distinct = len(set(results['vision'].values()))
        if distinct < count:
            failures += 1
            print('%-13s only %d different outputs' % (camera, distinct))
        shutil.rmtree(frames)
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
