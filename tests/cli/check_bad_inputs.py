"""Broken files of every kind through the tool: the documented exit code, lines of the documented
form, nothing left behind, nothing that a sanitizer complains of.

usage: check_bad_inputs.py INGOT [SEED]     standard library only
"""
import concurrent.futures
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'models'))
sys.dont_write_bytecode = True
from onnx_file import number, text as block  # noqa: E402

USAGE, MALFORMED, UNSUPPORTED, NOT_TRUSTED, INCOMPATIBLE, IO = 2, 3, 4, 5, 6, 8
LINE = re.compile(r'^(.+: (error|warning): .+|  hint: .+)$')
SANITIZER = re.compile(r'runtime error|AddressSanitizer|LeakSanitizer|MemorySanitizer|terminate')
CASE_SECONDS = 60
# LLVM and lld keep memory until the process ends.
ENVIRONMENT = {'ASAN_OPTIONS': 'detect_leaks=0', **os.environ}


# --- files: an ONNX model field by field, a .npy file, JSON as text

def value_info(name, shape):
    dims = b''.join(block(1, number(1, extent) if isinstance(extent, int) else block(2, extent))
                    for extent in shape)
    return block(1, name) + block(2, block(1, number(1, 1) + block(2, dims)))


def onnx(inputs, outputs, nodes, opset=13):
    graph = b''
    for op, reads, writes, name in nodes:
        graph += block(1, b''.join(block(1, r) for r in reads) +
                       b''.join(block(2, w) for w in writes) + block(3, name) + block(4, op))
    graph += block(2, 'graph')
    graph += b''.join(block(11, value_info(*i)) for i in inputs)
    graph += b''.join(block(12, value_info(*o)) for o in outputs)
    return number(1, 8) + block(7, graph) + block(8, number(2, opset))


def relu_model(op='Relu', reads=('x',), shape=(2, 3)):
    return onnx([('x', shape)], [('y', shape)], [(op, reads, ['y'], 'the_node')])


def npy(shape, values, descr='<f4', code='f'):
    dims = ''.join('%d,' % extent for extent in shape)
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (descr, dims)
    header += ' ' * (-(len(header) + 11) % 64) + '\n'
    return (b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode() +
            struct.pack('<%d%s' % (len(values), code), *values))


CAMERA = ('{"format": "ingot-camera/1", "name": "tiny", "pixel_format": "nv12", "width": 64, '
          '"height": 32, "stride": 64, "y_height": 32, "uv_height": 16, "uv_offset": 2048, '
          '"size": 3072}')
PIPELINE = ('{"format": "ingot-pipeline/1", "name": "warp", "cameras": ["c.json"], '
            '"frames": ["frame"], "stages": [{"id": "image", "warp": "road", "frame": "frame", '
            '"transform": "tfm", "size": [16, 16]}], "outputs": {"image": "image"}}')
IDENTITY = (1, 0, 0, 0, 1, 0, 0, 0, 1)
FRAME = bytes(3072)


# --- cases: (name, arguments, allowed exit codes, {file: bytes})

class Cases:
    """`good` are files that work; a case gets all of them, and its own over them."""

    def __init__(self, good, seed):
        self.good = good
        self.random = random.Random(seed)
        self.list = []

    def add(self, name, arguments, exits, **files):
        exits = exits if isinstance(exits, tuple) else (exits,)
        # A file's name with its dot written as two underscores.
        named = {key.replace('__', '.'): data for key, data in files.items()}
        self.list.append((name, arguments.split(' '), exits, named))

    def noise(self, count):
        return self.random.randbytes(count)

    def broken(self, data, cuts, flips, noises):
        """(what, bytes): truncated, with a few wrong bytes, and no such file at all."""
        yield 'empty', b''
        for i in range(cuts):
            size = self.random.randrange(1, len(data))
            yield 'cut to %d' % size, data[:size]
        for i in range(flips):
            changed = bytearray(data)
            for _ in range(self.random.randrange(1, 4)):
                changed[self.random.randrange(len(data))] ^= self.random.randrange(1, 256)
            yield 'flip %d' % i, bytes(changed)
        for i in range(noises):
            yield 'noise %d' % i, self.noise(self.random.randrange(1, 3000))


COMPILE = 'compile %s -o new.ingot --unsigned --no-progress --check off -O0'
RUN_WARP = 'run warp.ingot --allow-unsigned --output-dir new --input frame=%s --input tfm=%s'


def model_cases(cases):
    # A changed byte may still be a model: then it compiles, or is one that ingot does not take.
    model = cases.good['m.onnx']
    for what, data in cases.broken(model, 25, 0, 15):
        cases.add('model ' + what, COMPILE % 'b.onnx', (MALFORMED, UNSUPPORTED), b__onnx=data)
    for what, data in cases.broken(model, 0, 40, 0):
        cases.add('model ' + what, 'check-model b.onnx', (0, MALFORMED, UNSUPPORTED), b__onnx=data)
    bad = {
        'operator': (relu_model('NoSuchOperator'), UNSUPPORTED),
        'opset': (onnx([('x', (2,))], [('y', (2,))], [('Relu', 'x', 'y', 'n')], 999), UNSUPPORTED),
        'open dimension': (relu_model(shape=('batch', 3)), UNSUPPORTED),
        'huge dimension': (relu_model(shape=(1 << 40, 3)), UNSUPPORTED),
        'undefined value': (relu_model(reads=('nothing',)), MALFORMED),
        'surplus inputs': (relu_model(reads=('x', 'x', 'x')), MALFORMED),
        'missing input': (relu_model('Add'), MALFORMED),
        'cycle': (onnx([('x', (2,))], [('y', (2,))], [('Add', ('x', 'y'), 'y', 'n')]), MALFORMED),
        'no outputs': (onnx([('x', (2,))], [], [('Relu', 'x', 'y', 'n')]), MALFORMED),
        'output twice': (onnx([('x', (2,))], [('y', (2,)), ('y', (2,))],
                              [('Relu', 'x', 'y', 'n')]), MALFORMED),
        'output is input': (onnx([('x', (2,))], [('x', (2,))], []), UNSUPPORTED),
        'shapes that do not fit': (onnx([('x', (2,)), ('z', (3,))], [('y', (2,))],
                                        [('Add', ('x', 'z'), 'y', 'n')]), MALFORMED),
    }
    for what, (data, exit_code) in bad.items():
        cases.add('model with ' + what, COMPILE % 'b.onnx', exit_code, b__onnx=data)
        cases.add('check model with ' + what, 'check-model b.onnx', exit_code, b__onnx=data)
    cases.add('model missing', COMPILE % 'none.onnx', IO)
    cases.add('model is a folder', COMPILE % '.', IO)
    cases.add('bound to a damaged tensor', COMPILE % 'm.onnx' + ' --bind x=b.npy', MALFORMED,
              b__npy=cases.noise(50))
    cases.add('output folder missing',
              'compile m.onnx -o no/new.ingot --unsigned --no-progress --emit asm --emit-dir new',
              IO)
    cases.add('output is the model', 'compile m.onnx -o m.onnx --unsigned', USAGE)


def artifact_cases(cases):
    artifact = cases.good['signed.ingot']
    readers = ['inspect b.ingot', 'inspect b.ingot --calls --buffers --json',
               'verify b.ingot --pub k.pub', 'sign b.ingot --key k.key',
               'run b.ingot --pub k.pub --input x=x.npy --output-dir new',
               'bench b.ingot --pub k.pub --runs 1',
               'check b.ingot --pub k.pub --golden golden']
    refused = (NOT_TRUSTED, INCOMPATIBLE)  # 6: the bytes of the version and of required features
    for i, (what, data) in enumerate(cases.broken(artifact, 30, 60, 15)):
        cases.add('artifact ' + what, readers[i % len(readers)], refused, b__ingot=data)
    for reader in readers:
        cases.add('artifact of noise', reader, NOT_TRUSTED, b__ingot=cases.noise(100))
        cases.add('artifact missing', reader, IO)
        cases.add('artifact with more behind it', reader, NOT_TRUSTED, b__ingot=artifact + b'x')
    plain = cases.good['m.ingot']
    for reader in readers[2:3] + readers[4:]:
        cases.add('unsigned artifact', reader, NOT_TRUSTED, b__ingot=plain)
        cases.add('wrong key', reader.replace('k.pub', 'other.pub'), NOT_TRUSTED, b__ingot=artifact)
    cases.add('another id', 'verify signed.ingot --pub k.pub --id ' + '0' * 64, NOT_TRUSTED)
    cases.add('another product', 'verify signed.ingot --pub k.pub --product other', INCOMPATIBLE)
    for what, data in cases.broken(cases.good['s.sig'], 6, 6, 4):
        cases.add('detached ' + what, 'verify m.ingot --pub k.pub --detached b.sig', NOT_TRUSTED,
                  b__sig=data)
    cases.add('detached of noise', 'sign m.ingot --key k.key --detached b.sig', NOT_TRUSTED,
              b__sig=cases.noise(64))


def key_cases(cases):
    for kind, command in (('key', 'sign m.ingot --key b.key'),
                          ('key', 'compile m.onnx -o new.ingot --sign b.key --no-progress'),
                          ('pub', 'verify signed.ingot --pub b.pub'),
                          ('pub', 'run signed.ingot --pub b.pub --input x=x.npy --output-dir new')):
        # The last byte is a line feed, which PEM does not need.
        for what, data in cases.broken(cases.good['k.' + kind][:-1], 8, 0, 4):
            cases.add('%s %s' % (kind, what), command, MALFORMED, **{'b__' + kind: data})
        other = cases.good['k.pub' if kind == 'key' else 'k.key']
        cases.add('the other half', command, MALFORMED, **{'b__' + kind: other})
        cases.add(kind + ' missing', command, IO)
    cases.add('keys exist', 'keygen k', IO)
    cases.add('key folder missing', 'keygen no/new', IO)


def json_cases(cases):
    for name, text, command in (
            ('c.json', CAMERA, COMPILE % 'p.json'), ('p.json', PIPELINE, COMPILE % 'p.json'),
            ('p.json', PIPELINE, 'check-model p.json')):
        for what, data in cases.broken(text.encode(), 15, 0, 8):
            cases.add('%s %s' % (name, what), command, MALFORMED, **{name.replace('.', '__'): data})
    swaps = [(CAMERA, 'c.json', '"width": 64', '"width": %s', ('0', '-2', '63', '1e99', '"64"',
                                                               'null', '99999999999')),
             (CAMERA, 'c.json', '"size": 3072', '"size": %s', ('3071', '0', '[]', '1e400')),
             (CAMERA, 'c.json', '"nv12"', '%s', ('"rgb"', '7', '"nv12", "more": 1')),
             (PIPELINE, 'p.json', '[16, 16]', '%s', ('[15, 16]', '[0, 0]', '[16]', '16',
                                                     '[1e9, 16]', '[16, -16]')),
             (PIPELINE, 'p.json', '"c.json"', '"%s"', (
                 '../c.json', '/etc/passwd', 'c.json", "c.json')),
             (PIPELINE, 'p.json', '"image"}', '%s}', ('"nothing"', '"image.y"', '3')),
             (PIPELINE, 'p.json', '"warp": "road"', '"warp": %s', (
                 '"sky"', '1', '"road", "queue": "x"')),
             (PIPELINE, 'p.json', '"frame": "frame"', '"frame": %s', (
                 '"other"', '[]', '["frame"]'))]
    for text, name, old, new, values in swaps:
        assert old in text
        for value in values:
            cases.add('%s with %s' % (name, value), COMPILE % 'p.json', MALFORMED,
                      **{name.replace('.', '__'): text.replace(old, new % value).encode()})
    stage = ('{"format": "ingot-pipeline/1", "name": "p", "inputs": {"v": {"dtype": "f32", '
             '"shape": [%s]}}, "stages": [{"id": "m", "model": "%s", "inputs": {"%s": "v"}%s}], '
             '"outputs": {"y": "m.y"}}')
    for what, parts, exit_code in (
            ('shape', ('2, 4', 'm.onnx', 'x', ''), MALFORMED),
            ('rank', ('2', 'm.onnx', 'x', ''), MALFORMED),
            ('input', ('2, 3', 'm.onnx', 'nothing', ''), MALFORMED),
            ('states', ('2, 3', 'm.onnx', 'x', ', "states": {"a": "b"}'), MALFORMED),
            ('model file', ('2, 3', 'none.onnx', 'x', ''), IO)):
        cases.add('pipeline with a bad ' + what, COMPILE % 'q.json', exit_code,
                  q__json=(stage % parts).encode())
    huge = '2147483648, 2147483648, 2147483648'
    cases.add('pipeline with a huge input', COMPILE % 'q.json', UNSUPPORTED,
              q__json=(stage % (huge, 'm.onnx', 'x', '')).encode())
    queue = ('{"format": "ingot-pipeline/1", "name": "p", "inputs": {"v": {"dtype": "f32", '
             '"shape": [%s]}}, "stages": [{"id": "q", "queue": "v", "samples": %d, "stride": %d, '
             '"stack": 0%s}], "outputs": {"y": "q"}}')
    for what, parts in (('input', (huge, 2, 1, '')), ('length', ('1073741824', 65536, 1, '')),
                        ('pool', ('16777216', 65536, 65536, ', "pool": "max"'))):
        cases.add('queue with a huge ' + what, COMPILE % 'q.json', UNSUPPORTED,
                  q__json=(queue % parts).encode())
    cases.add('nested deeply', COMPILE % 'p.json', MALFORMED, p__json=b'[' * 100000)
    cases.add('pipeline missing', COMPILE % 'none.json', IO)
    cases.add('camera missing', COMPILE % 'm.onnx' + ' --warp road --camera none.json', IO)
    for what, data in cases.broken(b'{"format": "ingot-device/1", "target": "x86-64-v3"}', 6, 0, 3):
        cases.add('device ' + what, COMPILE % 'm.onnx' + ' --device d.json', MALFORMED,
                  d__json=data)
    for what, data in cases.broken(b'{"format": "ingot-policy/1", "threshold": 1}', 6, 0, 3):
        cases.add('policy ' + what, 'verify signed.ingot --policy o.json', MALFORMED, o__json=data)
    cases.add('deploy list of noise', 'verify signed.ingot --pub k.pub --ids l.txt', MALFORMED,
              l__txt=b'zz' + cases.noise(40))
    for what, data in cases.broken(b'[{"name": "a", "inputs": [], "runs": []}]', 8, 0, 4):
        cases.add('cases.json ' + what, 'check m.ingot --allow-unsigned --golden b.json', MALFORMED,
                  b__json=data)


def frame_cases(cases):
    nan, inf = float('nan'), float('inf')
    for matrix in ((0,) * 9, (1, 0, 0, 0, 1, 0, 0, 0, 0),
                   (1e30, 0, 0, 0, 1, 0, 0, 0, 1), (nan,) + IDENTITY[1:], IDENTITY[:8] + (inf,)):
        cases.add('matrix %s' % (matrix,), RUN_WARP % ('f.bin', 'b.npy'), MALFORMED,
                  b__npy=npy((3, 3), matrix))
    for size in (0, 1, 3071, 3073, 9999):
        cases.add('frame of %d bytes' % size, RUN_WARP % ('b.bin', 't.npy'), MALFORMED,
                  b__bin=bytes(size))
    cases.add('frame of another shape', RUN_WARP % ('b.npy', 't.npy'), MALFORMED,
              b__npy=npy((32, 96), FRAME, '|u1', 'B'))
    cases.add('unknown camera', RUN_WARP % ('f.bin', 't.npy') + ' --camera zz', USAGE)
    cases.add('frame missing', RUN_WARP % ('none.bin', 't.npy'), IO)
    run = 'run m.ingot --allow-unsigned --output-dir new --input x=b.npy'
    for what, data in cases.broken(cases.good['x.npy'], 15, 0, 8):
        cases.add('tensor ' + what, run, MALFORMED, b__npy=data)
    for what, data in (('type', npy((2, 3), (1,) * 6, '<f8', 'd')),
                       ('shape', npy((3, 2), (1,) * 6)),
                       ('rank', npy((6,), (1,) * 6)), ('size', npy((1 << 40, 3), (1,) * 6)),
                       ('byte order', npy((2, 3), (1,) * 6, '>f4'))):
        cases.add('tensor of another ' + what, run, (MALFORMED, UNSUPPORTED), b__npy=data)
    protobuf = b'\x08\x02\x08\x03\x10\x01\x42\x01x\x4a\x18' + bytes(24)  # float32 [2, 3], zeros
    for what, data in cases.broken(protobuf, 8, 10, 6):
        cases.add('protobuf tensor ' + what, run.replace('b.npy', 'b.pb'),
                  (0, MALFORMED, UNSUPPORTED), b__pb=data)
    cases.add('input missing', 'run m.ingot --allow-unsigned --output-dir new', USAGE)
    cases.add('input of no such name', run + ' --input z=x.npy', USAGE, b__npy=cases.good['x.npy'])
    sequence = 'run m.ingot --allow-unsigned --output-dir new --sequence seq'
    good = cases.good['x.npy']
    cases.add('sequence with a gap', sequence, MALFORMED,
              **{'seq/0000/x__npy': good, 'seq/0001/x__npy': good, 'seq/0003/x__npy': good})
    cases.add('sequence with a bad frame', sequence, MALFORMED,
              **{'seq/0000/x__npy': good, 'seq/0001/x__npy': good[:90]})
    cases.add('sequence without a tensor', sequence, IO,
              **{'seq/0000/x__npy': good, 'seq/0001/z__npy': good})
    cases.add('sequence missing', sequence, IO)


def text_cases(cases):
    for i in range(12):
        data = cases.noise(200)
        for name in ('fold-constants', 'apply-schedule', 'plan-memory'):
            cases.add('%s of noise' % name, 'pass %s b.txt' % name, MALFORMED, b__txt=data)
    for arguments in ('', 'nothing', 'compile', 'compile m.onnx', 'compile m.onnx -o a.ingot -j 0',
                      'compile m.onnx -o new.ingot', 'run m.ingot --output-dir', 'inspect',
                      'bench m.ingot --allow-unsigned --rate 1e-300', 'verify m.ingot --id xyz',
                      'compile m.onnx -o new.ingot --unsigned --no-progress --target z80',
                      'compile m.onnx -o new.ingot --unsigned --no-progress --shape x=2xx3',
                      'compile m.onnx -o new.ingot --unsigned --no-progress --dim nothing=2'):
        cases.add('usage: ' + arguments, arguments, USAGE)


# --- running

def listing(folder):
    """{name: bytes} of everything below."""
    files = {}
    for base, folders, names in os.walk(folder):
        for name in folders:
            files[os.path.relpath(os.path.join(base, name), folder)] = None
        for name in names:
            path = os.path.join(base, name)
            with open(path, 'rb') as file:
                files[os.path.relpath(path, folder)] = file.read()
    return files


def write(folder, name, data):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file:
        file.write(data)


def tool(ingot, folder, arguments):
    return subprocess.run([ingot] + [a for a in arguments if a], cwd=folder, env=ENVIRONMENT,
                          timeout=CASE_SECONDS, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)


def complaints_of_lines(result, lines):
    if result.returncode != 0 and not any(': error: ' in line for line in lines):
        yield 'no error is named'
    if not all(LINE.match(line) for line in lines):
        yield 'a line has another form'


def complaints(result, arguments, exits, before, after):
    errors = result.stderr.decode('utf-8', 'replace')
    if result.returncode not in exits:
        yield 'exit code %d, expected %s' % (result.returncode, ' or '.join(map(str, exits)))
    if SANITIZER.search(errors + result.stdout.decode('utf-8', 'replace')):
        yield 'a sanitizer or the runtime complains'
    if arguments[-1] == '--json' and result.returncode != 0:
        try:
            named = [entry['message'] for entry in json.loads(errors)]
            if not named or '' in named:
                yield 'no error is named'
        except ValueError:
            yield 'the errors are no JSON'
    else:
        yield from complaints_of_lines(result, errors.splitlines())
    if result.returncode != 0 and after != before:
        changed = [name for name in set(before) | set(after) if before.get(name) != after.get(name)]
        yield 'left behind or changed: ' + ', '.join(sorted(changed))


def run_case(ingot, work, good, index, case):
    name, arguments, exits, files = case
    folder = os.path.join(work, '%04d' % index)
    for file, data in {**good, **files}.items():
        write(folder, file, data)
    before = listing(folder)
    try:
        result = tool(ingot, folder, arguments)
    except subprocess.TimeoutExpired:
        return ['%s: no end after %d s: ingot %s' % (name, CASE_SECONDS, ' '.join(arguments))]
    found = list(complaints(result, arguments, exits, before, listing(folder)))
    shutil.rmtree(folder)
    if not found:
        return []
    return ['%s: %s\n  ingot %s\n  %s' % (name, '; '.join(found), ' '.join(arguments),
                                         result.stderr.decode('utf-8', 'replace').strip())]


def make_good_files(ingot, folder):
    files = {'m.onnx': relu_model(), 'c.json': CAMERA.encode(), 'p.json': PIPELINE.encode(),
             'x.npy': npy((2, 3), (1, -2, 3, -4, 5, -6)), 'f.bin': FRAME,
             't.npy': npy((3, 3), IDENTITY), 'golden/a/input_0.npy': npy((2, 3), (1,) * 6),
             'golden/a/output_0.npy': npy((2, 3), (1,) * 6)}
    for name, data in files.items():
        write(folder, name, data)
    for arguments in ('keygen k', 'keygen other', 'compile m.onnx -o m.ingot --unsigned',
                      'compile m.onnx -o signed.ingot --sign k.key',
                      'compile p.json -o warp.ingot --unsigned',
                      'sign m.ingot --key k.key --detached s.sig',
                      'run m.ingot --allow-unsigned --input x=x.npy --output-dir o',
                      'check m.ingot --allow-unsigned --golden golden',
                      'verify m.ingot --pub k.pub --detached s.sig',
                      RUN_WARP.replace('new', 'o') % ('f.bin', 't.npy')):
        result = tool(ingot, folder, arguments.split(' '))
        if result.returncode != 0:
            sys.exit('ingot %s failed:\n%s' % (arguments, result.stderr.decode()))
    shutil.rmtree(os.path.join(folder, 'o'))
    return {name: data for name, data in listing(folder).items() if data is not None}


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    ingot = os.path.abspath(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) == 3 else 1
    work = tempfile.mkdtemp(prefix='ingot-bad-inputs-')
    try:
        good = make_good_files(ingot, os.path.join(work, 'good'))
        cases = Cases(good, seed)
        for add in (model_cases, artifact_cases, key_cases, json_cases, frame_cases, text_cases):
            add(cases)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = pool.map(lambda numbered: run_case(ingot, work, good, *numbered),
                               enumerate(cases.list))
            failures = [failure for result in results for failure in result]
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for failure in failures:
        print(failure)
    print('%d cases, %d failures (seed %d)' % (len(cases.list), len(failures), seed))
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
