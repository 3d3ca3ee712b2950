"""What the model checks share: the tool, the shared data, .npy files, generated tensors.

Standard library only. Environment: INGOT (the tool), INGOT_REPLAY_AARCH64, INGOT_WORK (a folder to
write to), INGOT_SHARED (default: ../shared beside the source tree), CI.
"""
import array
import os
import shutil
import struct
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))
SHARED = os.environ.get('INGOT_SHARED', os.path.join(os.path.dirname(ROOT), 'shared'))
INGOT = os.environ.get('INGOT', os.path.join(ROOT, 'build', 'release', 'bin', 'ingot'))
REPLAY_AARCH64 = os.environ.get('INGOT_REPLAY_AARCH64', os.path.join(
    ROOT, 'build', 'release', 'loader-aarch64', 'bin', 'ingot_replay'))
WORK = os.environ.get('INGOT_WORK', os.path.join(ROOT, 'build', 'models'))
SKIPPED = 77

NPY_TYPES = {'<f4': 'f', '|u1': 'B', '<i4': 'i', '<i8': 'q', '<f8': 'd', '|b1': 'B'}
DESCR = {'float32': '<f4', 'uint8': '|u1', 'int32': '<i4', 'int64': '<i8', 'float64': '<f8'}


def skip(reason):
    print('skipped: ' + reason)
    sys.exit(SKIPPED)


def need_shared(*parts):
    """The path below the shared data; skips if it is not there, fails in CI."""
    path = os.path.join(SHARED, *parts)
    if not os.path.exists(path):
        if os.environ.get('CI') == 'true':
            sys.exit('no shared data for ' + '/'.join(parts))
        skip('no shared data: set INGOT_SHARED to its folder')
    return path


def cpu_runs(target):
    """Whether this processor has what an x86-64 level needs."""
    needed = {'x86-64-v2': ['sse4_2', 'popcnt'], 'x86-64-v3': ['avx2', 'fma', 'bmi2', 'f16c'],
              'x86-64-v4': ['avx512f', 'avx512bw', 'avx512cd', 'avx512dq', 'avx512vl']}
    with open('/proc/cpuinfo') as file:
        flags = next((line for line in file if line.startswith('flags')), '').split()
    return all(flag in flags for flag in needed[target])


def work_folder(name):
    return fresh_folder(os.path.join(WORK, name))


def fresh_folder(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


def run(command, env=None, cwd=None):
    """Runs a command; on failure prints it with its output and ends the test."""
    result = subprocess.run(command, env=env, cwd=cwd, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        print('$ ' + ' '.join(command))
        print(result.stdout)
        sys.exit('exit code %d' % result.returncode)
    return result.stdout


def qemu_aarch64(command):
    return ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu'] + command


def npy(path):
    """(shape, array) of a .npy file."""
    with open(path, 'rb') as file:
        data = file.read()
    start = 10 + struct.unpack('<H', data[8:10])[0]
    header = eval(data[10:start], {'__builtins__': {}})  # a literal dict of our own files
    values = array.array(NPY_TYPES[header['descr']])
    values.frombytes(data[start:])
    return tuple(header['shape']), values


def write_npy(path, descr, shape, data):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (
        descr, ''.join('%d,' % extent for extent in shape))
    header += ' ' * (-(len(header) + 11) % 64) + '\n'
    with open(path, 'wb') as file:
        file.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode() + data)


def count_of(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


def generated(name, shape, lo, hi, seed, dtype='float32'):
    """A test tensor by the recipe of docs/testing.md."""
    mask = 0xFFFFFFFF
    digest = 0x811C9DC5
    for byte in name.encode('utf-8'):
        digest = (digest ^ byte) * 0x01000193 & mask
    state = digest ^ (seed * 0x9E3779B1 & mask)
    values = array.array(NPY_TYPES[DESCR[dtype]])
    whole = not dtype.startswith('float')
    for i in range(count_of(shape)):
        x = state + i * 0x9E3779B9 & mask
        x ^= x >> 16
        x = x * 0x85EBCA6B & mask
        x ^= x >> 13
        x = x * 0xC2B2AE35 & mask
        x ^= x >> 16
        u = (x >> 8) / 16777216.0
        values.append(int(lo + (hi - lo + 1) * u // 1) if whole else lo + (hi - lo) * u)
    return values


def write_between(path, begin, end, text):
    """Puts the text between two lines of a page."""
    with open(path) as file:
        page = file.read()
    start = page.index(begin) + len(begin)
    with open(path, 'w') as file:
        file.write(page[:start] + text + page[page.index(end, start):])


def file_name(name):
    plain = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-'
    return ''.join(c if c in plain else '_' for c in name)
