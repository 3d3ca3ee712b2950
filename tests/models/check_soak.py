#!/usr/bin/env python3
"""Frames on end with the driving sample: nothing allocated, no page fault, outputs of a fresh instance.

usage: check_soak.py [--long]     a few seconds; --long: 100,000 frames back to back, 2 minutes at 20 Hz
"""
import os
import shutil
import sys

import support
from check_damage import raw_key

BIN = os.path.dirname(support.INGOT)
SOAK = os.environ.get('INGOT_SOAK', os.path.join(BIN, 'soak'))
MAKE_MODEL = os.environ.get('INGOT_MAKE_DRIVING_MODEL', os.path.join(BIN, 'make_driving_model'))
SAMPLE = os.path.join(support.ROOT, 'samples', 'driving')


def driving_artifact(folder):
    """(artifact, raw key) of the driving sample for both of its cameras."""
    shutil.copy(os.path.join(SAMPLE, 'pipeline.json'), folder)
    shutil.copytree(os.path.join(SAMPLE, 'cameras'), os.path.join(folder, 'cameras'))
    key = os.path.join(folder, 'key')
    artifact = os.path.join(folder, 'driving.ingot')
    support.run([MAKE_MODEL, folder])
    support.run([support.INGOT, 'keygen', key])
    support.run([support.INGOT, 'compile', os.path.join(folder, 'pipeline.json'), '-o', artifact,
                 '--sign', key + '.key', '--no-progress'])
    raw_key(key + '.pub', key + '.raw')
    return artifact, key + '.raw'


def main():
    artifact, key = driving_artifact(support.work_folder('soak'))
    long = '--long' in sys.argv
    print(support.run([SOAK, artifact, key, '100000' if long else '300', '0']), flush=True)
    print(support.run([SOAK, artifact, key, '2400' if long else '60', '20']))


if __name__ == '__main__':
    main()
