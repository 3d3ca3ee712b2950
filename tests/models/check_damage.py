#!/usr/bin/env python3
"""Every byte flip and every truncation of a small signed artifact is refused.

usage: check_damage.py
"""
import base64
import os

import support
from check_determinism import tiny_pipeline


def raw_key(pem, out):
    """The last 32 bytes of a public key file are the key itself."""
    with open(pem) as file:
        text = ''.join(line.strip() for line in file if not line.startswith('-----'))
    with open(out, 'wb') as file:
        file.write(base64.b64decode(text)[-32:])


def main():
    folder = support.work_folder('damage')
    key = os.path.join(folder, 'key')
    artifact = os.path.join(folder, 'small.ingot')
    support.run([support.INGOT, 'keygen', key])
    support.run([support.INGOT, 'compile', tiny_pipeline(folder), '-o', artifact, '--sign',
                 key + '.key', '--target', 'x86-64-v2', '--no-progress'])
    raw_key(key + '.pub', key + '.raw')
    print(support.run([os.environ['INGOT_DAMAGE'], artifact, key + '.raw']))


if __name__ == '__main__':
    main()
