"""The sections of an artifact, as docs/artifact_format.md says where they lie.

Standard library only.
"""
import struct

CODE, MODEL, PROGRAMS, CALLS, MANIFEST = 23, 2, 21, 22, 64


def sections(path):
    """{(type, variant, index): bytes}"""
    with open(path, 'rb') as file:
        data = file.read()
    table, count, size = struct.unpack_from('<QII', data, 0x20)
    result = {}
    for i in range(count):
        kind, variant, _, offset, length, _, _, _, index = struct.unpack_from(
            '<IHHQQQIII', data, table + i * size)
        result[kind, variant, index] = data[offset:offset + length]
    return result
