"""Compiles a pipeline and runs frames through sequence.cpp: natively, or for aarch64 under qemu."""
import os

import support
from check_damage import raw_key

NATIVE = os.environ.get('INGOT_SEQUENCE', os.path.join(os.path.dirname(support.INGOT), 'sequence'))


def program(target, folder):
    """The command that runs artifacts of a target."""
    if target != 'aarch64':
        if not support.cpu_runs(target):
            support.skip('this processor has less than ' + target)
        return [NATIVE]
    # Beside the loader that was built for that processor.
    loader = os.path.join(os.path.dirname(os.path.dirname(support.REPLAY_AARCH64)), 'lib',
                          'libingot_loader.a')
    if not os.path.exists(loader):
        support.skip('no loader for aarch64: ctest -R loader_aarch64')
    path = os.path.join(folder, 'sequence')
    support.run(['aarch64-linux-gnu-g++', '-std=c++17', '-O2', '-I', support.ROOT,
                 os.path.join(os.path.dirname(__file__), 'sequence.cpp'), loader, '-o', path])
    return support.qemu_aarch64([path])


class Artifact:
    def __init__(self, source, target, folder):
        self.folder, self.command = folder, program(target, folder)
        self.path, key = os.path.join(folder, 'artifact.ingot'), os.path.join(folder, 'key')
        support.run([support.INGOT, 'keygen', key])
        raw_key(key + '.pub', key + '.raw')
        self.key = key + '.raw'
        support.run([support.INGOT, 'compile', source, '-o', self.path, '--target', target,
                     '--sign', key + '.key', '--no-progress'])

    def run(self, frames, sizes, camera='', reset=0):
        """For each frame {input: bytes} (in one order): whether it was accepted, and {output: bytes}
        by the sizes {output: bytes}."""
        given, made = (os.path.join(self.folder, name) for name in ('inputs.bin', 'outputs.bin'))
        with open(given, 'wb') as file:
            for frame in frames:
                file.write(b''.join(frame.values()))
        support.run(self.command + [self.path, self.key, camera, given, made, str(len(frames)),
                                    str(reset)] + list(frames[0]) + ['--'] + list(sizes))
        with open(made, 'rb') as file:
            data = file.read()
        os.remove(given)
        os.remove(made)
        if len(data) != len(frames) * (1 + sum(sizes.values())):
            raise SystemExit('outputs of another size: %d bytes' % len(data))
        at = 0
        for _ in frames:
            accepted, at, outputs = data[at] == 1, at + 1, {}
            for name, size in sizes.items():
                outputs[name], at = data[at:at + size], at + size
            yield accepted, outputs
