#!/usr/bin/env python3
"""Prints the first values, mean and extremes of every float32 output of a frame or a sequence.

usage: show_outputs.py OUT_DIR      (OUT_DIR/NAME.npy, or OUT_DIR/0000/NAME.npy, ...)
"""
import array
import os
import sys


def floats(path):
    with open(path, 'rb') as file:
        data = file.read()
    start = 10 + int.from_bytes(data[8:10], 'little')
    if b"'<f4'" not in data[10:start]:
        return None
    values = array.array('f')
    values.frombytes(data[start:])
    return values


def show(folder, title):
    for name in sorted(os.listdir(folder)):
        values = floats(os.path.join(folder, name)) if name.endswith('.npy') else None
        if not values:
            continue
        first = ' '.join('%9.5f' % value for value in values[:4])
        print('%s%-8s %5d values: %s ...  mean %.5f, %.4f..%.4f' % (
            title, name[:-4], len(values), first, sum(values) / len(values), min(values),
            max(values)))


def main():
    if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
        sys.exit(__doc__)
    show(sys.argv[1], '')
    for step in sorted(os.listdir(sys.argv[1])):
        if os.path.isdir(os.path.join(sys.argv[1], step)):
            show(os.path.join(sys.argv[1], step), step + ' ')


if __name__ == '__main__':
    main()
