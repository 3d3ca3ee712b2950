"""Runs an artifact through the native ingot_replay with harmless inputs."""
import os
import re
import struct
import subprocess
import sys

import support

REPLAY = os.environ.get('INGOT_REPLAY', os.path.join(os.path.dirname(support.INGOT), 'ingot_replay'))
PRELOAD = os.environ.get('INGOT_COUNT_ALLOCATIONS', '')


def inputs_of(artifact, folder, camera=()):
    """--input arguments: zeros, and the identity for 3x3 matrices."""
    listing = support.run([REPLAY, artifact, '--allow-unsigned', '--list'] + list(camera))
    arguments = []
    for name, shape, size in re.findall(r'^input (.*) dtype \d+ shape ?(\S*) nbytes (\d+)', listing,
                                        re.MULTILINE):
        path = os.path.join(folder, support.file_name(name) + '.bin')
        data = bytes(int(size))
        if shape == '3x3' and int(size) == 36:
            data = struct.pack('<9f', 1, 0, 0, 0, 1, 0, 0, 0, 1)
        with open(path, 'wb') as file:
            file.write(data)
        arguments += ['--input', name + '=' + path]
    return arguments


def run(artifact, inputs, frames, camera=(), count=False):
    """Times in milliseconds {min, median, p99, max}, and the number of allocations if asked."""
    env = dict(os.environ)
    if count:
        env['LD_PRELOAD'] = PRELOAD
    result = subprocess.run([REPLAY, artifact, '--allow-unsigned', '--frames', str(frames)] +
                            list(camera) + inputs, env=env, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(result.stdout + result.stderr)
    times = re.search(r'min ([\d.]+) ms, median ([\d.]+), p99 ([\d.]+), max ([\d.]+)', result.stdout)
    names = ('min', 'median', 'p99', 'max')
    report = {name: float(text) for name, text in zip(names, times.groups())}
    if count:
        report['allocations'] = int(re.search(r'allocations (\d+)', result.stderr).group(1))
    return report
