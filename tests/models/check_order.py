#!/usr/bin/env python3
"""The order in which a file lists its independent nodes and its constants changes no byte: models
with both shuffled are compiled beside the original, and every section of the artifacts is the same
once the digest of the file is.

usage: check_order.py TARGET SEEDS MODEL...      mnist, driving_policy-o17, ..., or all
example: check_order.py x86-64-v3 3 ppocr_cls
"""
import hashlib
import json
import os
import random
import sys

import artifact_file
import model_cases
import onnx_file
import support


def manifest_without_model(section):
    """It repeats the digests of the section that names the file."""
    manifest = json.loads(section)
    del manifest['identity']['model_sha256']
    for entry in manifest['sections']:
        if entry['type'] == artifact_file.MODEL:
            del entry['sha256']
    return manifest


def compiled(model, path, target, folder, name):
    artifact = os.path.join(folder, name + '.ingot')
    support.run([support.INGOT, 'compile', path, '-o', artifact, '--target', target, '--check', 'off',
                 '--unsigned', '--no-progress'] + model.compile_arguments(folder))
    with open(path, 'rb') as file:
        digest = hashlib.sha256(file.read()).digest()
    result = {}
    for key, section in artifact_file.sections(artifact).items():
        section = section.replace(digest, b'DIGEST').replace(digest.hex().encode(), b'DIGEST')
        is_manifest = key[0] == artifact_file.MANIFEST
        result[key] = manifest_without_model(section) if is_manifest else section
    return result


def differences(one, other):
    """Names of sections."""
    return ['section %d of variant %d, number %d' % key for key in sorted(one.keys() | other.keys())
            if one.get(key) != other.get(key)]


def check(model, target, seeds, folder):
    with open(model.path, 'rb') as file:
        data = file.read()
    expected = compiled(model, model.path, target, folder, 'original')
    orders = {data}
    for seed in range(1, seeds + 1):
        changed = onnx_file.shuffled(data, random.Random(seed))
        orders.add(changed)
        path = os.path.join(support.fresh_folder(os.path.join(folder, str(seed))),
                            os.path.basename(model.path))
        with open(path, 'wb') as file:
            file.write(changed)
        got = compiled(model, path, target, folder, 'shuffled')
        found = differences(expected, got)
        if found:
            return 'FAIL with seed %d: %s' % (seed, '; '.join(found))
        os.remove(path)
    if len(orders) < 2:
        return 'FAIL: shuffling changes nothing'
    return '%d orders, %d equal sections' % (len(orders), len(expected))


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    target, seeds, titles = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    whole = titles == ['all']
    models = model_cases.all_models() if whole else [model_cases.find(t) for t in titles]
    failed = []
    for model in models:
        if whole and not os.path.exists(model.path):
            print('%s: left out, no file' % model.title, flush=True)
            continue
        folder = support.work_folder('order-' + model.title)
        text = check(model, target, seeds, folder)
        print('%s: %s' % (model.title, text), flush=True)
        if text.startswith('FAIL'):
            failed.append(model.title)
        if whole:
            support.fresh_folder(folder)
    if failed:
        sys.exit('the order of the file shows: ' + ' '.join(failed))


if __name__ == '__main__':
    main()
