#!/usr/bin/env python3
"""Compiles a road and a cabin warp for a small camera and runs warp_frames_test on them.

usage: check_frames.py [arguments of the test program]
"""
import json
import os
import sys

import support
from check_damage import raw_key

# Both planes end at the end of a page, so that guards stand at both ends of a frame.
CAMERA = {'format': 'ingot-camera/1', 'name': 'small', 'pixel_format': 'nv12', 'width': 76,
          'height': 50, 'stride': 128, 'y_height': 64, 'uv_height': 32, 'size': 12288}


def compile_warp(folder, key, name, frames, stage):
    stage = dict(stage, id='picture', transform='tfm')
    pipeline = {'format': 'ingot-pipeline/1', 'name': name, 'cameras': ['camera.json'],
                'frames': frames, 'stages': [stage], 'outputs': {'image': 'picture'}}
    for file_name, content in ((name + '.json', pipeline), ('camera.json', CAMERA)):
        with open(os.path.join(folder, file_name), 'w') as file:
            json.dump(content, file)
    support.run([support.INGOT, 'compile', os.path.join(folder, name + '.json'), '-o',
                 os.path.join(folder, name + '.ingot'), '--sign', key + '.key', '--no-progress'])


def main():
    folder = support.work_folder('frames')
    key = os.path.join(folder, 'key')
    support.run([support.INGOT, 'keygen', key])
    raw_key(key + '.pub', key + '.raw')
    compile_warp(folder, key, 'road', ['frame', 'big_frame'],
                 {'warp': 'road', 'frame': ['frame', 'big_frame'], 'size': [32, 16]})
    compile_warp(folder, key, 'cabin', ['frame'],
                 {'warp': 'cabin', 'frame': 'frame', 'size': [24, 32], 'fill': 16})
    env = dict(os.environ, INGOT_FRAMES=folder)
    print(support.run([os.environ['INGOT_WARP_FRAMES'], '--gtest_brief=1'] + sys.argv[1:], env=env))


if __name__ == '__main__':
    main()
