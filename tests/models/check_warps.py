#!/usr/bin/env python3
"""Compiles a warp pipeline for every camera of the golden warps and compares every byte.

usage: check_warps.py TARGET [--cabin] [--layouts]     road_* cases; --cabin adds cabin_* cases,
                                                       --layouts a shifted picture of every golden layout

x86-64 targets go through `ingot run`; aarch64 through ingot_replay under qemu.
"""
import array
import hashlib
import json
import os
import struct
import sys

import support

MASK = 0xFFFFFFFFFFFFFFFF


def frame_bytes(kind, seed, size):
    if kind == 'ramp':
        period = bytes((167 * i + 13 * (i // 256) + 11) % 256 for i in range(65536))
        return (period * (size // len(period) + 1))[:size]
    words = array.array('Q')
    for _ in range((size + 7) // 8):
        seed = seed + 0x9E3779B97F4A7C15 & MASK
        z = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
        words.append(z ^ (z >> 31))
    return words.tobytes()[:size]


def pipeline_of(case):
    frames = ['frame', 'big_frame'][:case['frames']]
    stage = {'id': 'picture', 'warp': 'road', 'frame': frames if len(frames) > 1 else 'frame',
             'transform': 'tfm', 'size': [case['out_width'], case['out_height']]}
    if case['layout'] == 'luma':
        stage['warp'] = 'cabin'
        if case['border_fill'] is not None:
            stage['fill'] = case['border_fill']
    return {'format': 'ingot-pipeline/1', 'name': 'warp', 'cameras': ['camera.json'],
            'frames': frames, 'stages': [stage], 'outputs': {'image': 'picture'}}


def camera_of(case):
    camera = dict(case['camera'])
    camera.update({'format': 'ingot-camera/1', 'pixel_format': 'nv12',
                   'uv_offset': camera['stride'] * camera['y_height']})
    return camera


class Checker:
    def __init__(self, target):
        self.target = target
        self.folder = support.work_folder('warp-' + target)
        self.artifacts = {}
        self.frames = {}

    def artifact(self, case):
        """Compiled once for every camera, size and kind."""
        pipeline, camera = pipeline_of(case), camera_of(case)
        key = json.dumps([pipeline, camera], sort_keys=True)
        if key not in self.artifacts:
            folder = os.path.join(self.folder, str(len(self.artifacts)))
            os.makedirs(folder)
            for name, content in (('pipeline.json', pipeline), ('camera.json', camera)):
                with open(os.path.join(folder, name), 'w') as file:
                    json.dump(content, file)
            path = os.path.join(folder, 'warp.ingot')
            support.run([support.INGOT, 'compile', os.path.join(folder, 'pipeline.json'), '-o',
                         path, '--target', self.target, '--unsigned', '--no-progress'])
            self.artifacts[key] = path
        return self.artifacts[key]

    def frame_file(self, case, index):
        seed, size = case['frame_seeds'][index], case['camera']['size']
        key = (case['frame_kind'], seed, size)
        if key not in self.frames:
            path = os.path.join(self.folder, 'frame%d.bin' % len(self.frames))
            with open(path, 'wb') as file:
                file.write(frame_bytes(*key))
            self.frames[key] = path
        return self.frames[key]

    def run(self, case):
        """The bytes of the warped picture."""
        numbers = b''.join(struct.pack('<I', int(word, 16))
                           for matrix in case['matrices_f32_hex'] for word in matrix)
        matrix = os.path.join(self.folder, 'tfm.bin')
        with open(matrix, 'wb') as file:
            file.write(numbers)
        arguments = ['--allow-unsigned', '--output-dir', self.folder, '--input', 'tfm=' + matrix]
        for index, name in enumerate(['frame', 'big_frame'][:case['frames']]):
            arguments += ['--input', name + '=' + self.frame_file(case, index)]
        if self.target == 'aarch64':
            support.run(support.qemu_aarch64([support.REPLAY_AARCH64, self.artifact(case)] +
                                             arguments))
        else:
            support.run([support.INGOT, 'run', self.artifact(case)] + arguments)
        _, values = support.npy(os.path.join(self.folder, 'image.npy'))
        return values.tobytes()

    def check(self, case):
        got = self.run(case)
        if hashlib.sha256(got).hexdigest() == case['sha256']:
            return True
        print('%s: %d bytes differ from the vectors' % (case['id'], len(got)))
        for index, value in zip(case['sample_index'], case['sample_value']):
            if index < len(got) and got[index] != value:
                print('  byte %d: %d, expected %d' % (index, got[index], value))
                break
        return False


def shifted(frame, camera, offset, interleaved, left, top, width, height, divisor):
    """The plane's pixels from (left, top) on, clamped to its edges."""
    columns = [min(left + x, camera['width'] // divisor - 1) for x in range(width)]
    picture = bytearray()
    for y in range(height):
        row = min(top + y, camera['height'] // divisor - 1)
        line = offset + row * camera['stride']
        picture += bytes(frame[line + interleaved * column] for column in columns)
    return picture


def check_layouts(checker):
    """A whole translation over the right and the lower edge, of each layout of nv12_layouts.json."""
    with open(support.need_shared('golden', 'warp', 'nv12_layouts.json')) as file:
        golden = json.load(file)
    layouts = golden['known'] + golden['others']
    passed = 0
    for number, layout in enumerate(layouts):
        width, height = min(64, layout['width']), min(32, layout['height'] // 4 * 4) or 4
        left = (layout['width'] - width // 2) // 2 * 2
        top = (layout['height'] - height // 2) // 2 * 2
        matrix = ['%08x' % struct.unpack('<I', struct.pack('<f', value))[0]
                  for value in (1, 0, left, 0, 1, top, 0, 0, 1)]
        case = {'id': '%(width)d x %(height)d' % layout, 'frames': 1, 'layout': 'yuv420',
                'out_width': width, 'out_height': height, 'border_fill': None,
                'frame_kind': 'ramp', 'frame_seeds': [number], 'matrices_f32_hex': [matrix],
                'camera': {key: layout[key] for key in ('width', 'height', 'stride', 'y_height',
                                                        'uv_height', 'size')},
                'sample_index': [], 'sample_value': []}
        case['camera']['name'] = 'layout%d' % number
        frame = frame_bytes('ramp', 0, layout['size'])
        luma = shifted(frame, layout, 0, 1, left, top, width, height, 1)
        expected = b''.join(
            bytes(luma[y * width + x] for y in range(row, height, 2) for x in range(column, width, 2))
            for row, column in ((0, 0), (1, 0), (0, 1), (1, 1)))
        for byte in (0, 1):
            expected += shifted(frame, layout, layout['uv_offset'] + byte, 2, left // 2, top // 2,
                                width // 2, height // 2, 2)
        case['sha256'] = hashlib.sha256(expected).hexdigest()
        passed += checker.check(case)
    print('%d of %d layouts equal in every byte' % (passed, len(layouts)))
    return passed == len(layouts) > 0


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    target = sys.argv[1]
    with open(support.need_shared('golden', 'warp', 'cases.json')) as file:
        cases = json.load(file)['cases']
    if target != 'aarch64' and not support.cpu_runs(target):
        support.skip('this processor has not all of ' + target)
    if '--cabin' not in sys.argv:
        cases = [case for case in cases if case['id'].startswith('road_')]
    checker = Checker(target)
    passed = sum(checker.check(case) for case in cases)
    print('%d of %d cases equal in every byte, %d artifacts' % (
        passed, len(cases), len(checker.artifacts)))
    good = passed == len(cases) > 0
    if '--layouts' in sys.argv:
        good = check_layouts(checker) and good
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
