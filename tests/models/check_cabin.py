#!/usr/bin/env python3
"""The cabin sample: signed, its reference vectors reproduced; its picture is a part of the frame, byte
for byte; and the model behind the warp gives the numbers that it gives for that picture alone.

usage: check_cabin.py TARGET
"""
import json
import os
import shutil
import struct
import sys

import support

SAMPLE = os.path.join(support.ROOT, 'samples', 'cabin')
MAKE_MODEL = os.environ.get('INGOT_MAKE_CABIN_MODEL', os.path.join(
    os.path.dirname(support.INGOT), 'make_cabin_model'))
WIDTH, HEIGHT, FILL = 1440, 960, 16
# Scale and offset of the published matrices, by the camera's width.
MATRICES = {1928: (1, 244, 248), 1344: (0.75, 132, 113)}


def frame_of(camera, number):
    period = bytes((167 * i + 13 * (i // 256) + 11 * number) % 256 for i in range(65536))
    return (period * (camera['size'] // len(period) + 1))[:camera['size']]


def picture_of(camera, frame):
    """Scales of 1 and 3/4 are exact, so that rounding (ties to even, as Python's) is all there is."""
    scale, left, top = MATRICES[camera['width']]
    columns = [round(scale * x + left) for x in range(WIDTH)]
    picture = bytearray()
    for y in range(HEIGHT):
        row = round(scale * y + top)
        if not 0 <= row < camera['height']:
            picture += bytes((FILL,)) * WIDTH
            continue
        line = frame[row * camera['stride']:row * camera['stride'] + camera['width']]
        picture += bytes(line[column] for column in columns)
    return bytes(picture)


def compile_signed(source, artifact, key, target):
    support.run([support.INGOT, 'compile', source, '-o', artifact, '--target', target, '--sign',
                 key + '.key', '--no-progress'])


def run(artifact, key, folder, inputs, output, camera=None):
    arguments = [] if camera is None else ['--camera', camera]
    for name, data in inputs.items():
        path = os.path.join(folder, name + '.bin')
        with open(path, 'wb') as file:
            file.write(data)
        arguments += ['--input', name + '=' + path]
    support.run([support.INGOT, 'run', artifact, '--pub', key + '.pub', '--output-dir', folder] +
                arguments)
    return support.npy(os.path.join(folder, output + '.npy'))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = sys.argv[1]
    if not support.cpu_runs(target):
        support.skip('this processor has less than ' + target)
    folder = support.work_folder('cabin-' + target)
    source = os.path.join(folder, 'sample')
    shutil.copytree(SAMPLE, source, ignore=shutil.ignore_patterns('*.cpp'))
    support.run([MAKE_MODEL, source])
    with open(os.path.join(source, 'pipeline.json')) as file:
        pipeline = json.load(file)
    stage = next(one for one in pipeline['stages'] if 'warp' in one)
    if (stage['size'], stage['fill']) != ([WIDTH, HEIGHT], FILL):
        sys.exit('the sample warps to another size')
    with open(os.path.join(source, 'picture.json'), 'w') as file:
        json.dump(dict(pipeline, stages=[stage], outputs={'image': stage['id']}), file)

    key = os.path.join(folder, 'key')
    support.run([support.INGOT, 'keygen', key])
    artifacts = {name: os.path.join(folder, name + '.ingot')
                 for name in ('pipeline', 'picture', 'model')}
    for name in ('pipeline', 'picture'):
        compile_signed(os.path.join(source, name + '.json'), artifacts[name], key, target)
    compile_signed(os.path.join(source, 'cabin_monitoring.onnx'), artifacts['model'], key, target)
    support.run([support.INGOT, 'verify', artifacts['pipeline'], '--pub', key + '.pub',
                 '--self-test'])

    seen = set()
    for path in pipeline['cameras']:
        with open(os.path.join(source, path)) as file:
            camera = json.load(file)
        scale, left, top = MATRICES[camera['width']]
        for number, calib in ((0, (0, 0, 0)), (1, (0, 0, 0)), (1, (0.1, -0.2, 0.05))):
            what = '%s, frame %d, calib %s' % (camera['name'], number, calib)
            frame = frame_of(camera, number)
            picture = picture_of(camera, frame)
            given = {'cabin_frame': frame,
                     'cabin_tfm': struct.pack('<9f', scale, 0, left, 0, scale, top, 0, 0, 1)}
            angles = {'calib': struct.pack('<3f', *calib)}
            shape, got = run(artifacts['picture'], key, folder, given, 'image', camera['name'])
            if shape != (1, WIDTH * HEIGHT) or got.tobytes() != picture:
                sys.exit(what + ': another picture')
            shape, values = run(artifacts['pipeline'], key, folder, {**given, **angles},
                                'monitoring', camera['name'])
            _, alone = run(artifacts['model'], key, folder, {'input_img': picture, **angles},
                           'outputs')
            if shape != (1, 552) or values.tobytes() != alone.tobytes():
                sys.exit(what + ': the model alone gives other numbers')
            seen.add(values.tobytes())
    if len(seen) != 6:
        sys.exit('only %d of 6 frames differ' % len(seen))
    print('2 cameras, 6 frames: pictures and outputs equal in every byte, all different')


if __name__ == '__main__':
    main()
