#!/usr/bin/env python3
"""Synthetic frames for the samples.

usage: make_frames.py CAMERA.json OUT_DIR COUNT [NAME...]
writes OUT_DIR/0000/NAME.npy, OUT_DIR/0001/NAME.npy, ... for every input of the driving sample: moving
pictures, the published matrices at zero calibration (for a camera that has none: the middle of its
picture), no desire, right-hand traffic. With names, only of those inputs, among which may be those
of the cabin sample: cabin_frame, cabin_tfm, calib.
"""
import json
import os
import struct
import sys

# Matrices from output pixel to camera pixel: scale and offset, by camera width.
ROAD = {1928: (2.90989017, 219.068130, 465.489227), 1344: (1.25439560, 350.874725, 320.290771)}
WIDE = {1928: (1.24615383, 644.984619, 414.833832), 1344: (0.934615374, 432.738464, 238.125381)}
CABIN = {1928: (1, 244, 248), 1344: (0.75, 132, 113)}
DRIVING_INPUTS = ('frame', 'big_frame', 'tfm', 'big_tfm', 'desire', 'traffic_convention')


def write_npy(path, descr, shape, data):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (
        descr, ''.join('%d,' % extent for extent in shape))
    header += ' ' * (-(len(header) + 11) % 64) + '\n'
    with open(path, 'wb') as file:
        file.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode() + data)


def picture(camera, step):
    """A diagonal ramp that moves, grey chroma; padding is zero."""
    stride, width, height = camera['stride'], camera['width'], camera['height']
    ramp = bytes((i & 0xFF) for i in range(width + 256 * 8))
    frame = bytearray(camera['size'])
    for row in range(height):
        start = (row + step) % 256
        frame[row * stride:row * stride + width] = ramp[start:start + width]
    chroma = camera.get('uv_offset', stride * camera['y_height'])
    for row in range(height // 2):
        frame[chroma + row * stride:chroma + row * stride + width] = b'\x80' * width
    return bytes(frame)


def matrix(known, camera, size=(512, 256)):
    """From a picture of `size` to the frame; the largest part of it if the camera is not known."""
    width, height = camera['width'], camera['height']
    scale = min(width / size[0], height / size[1])
    centred = (scale, (width - scale * size[0]) / 2, (height - scale * size[1]) / 2)
    scale, x, y = known.get(width, centred)
    return struct.pack('<9f', scale, 0, x, 0, scale, y, 0, 0, 1)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    wanted = sys.argv[4:]
    with open(sys.argv[1]) as file:
        camera = json.load(file)
    for step in range(int(sys.argv[3])):
        folder = os.path.join(sys.argv[2], '%04d' % step)
        os.makedirs(folder, exist_ok=True)
        inputs = {
            'frame': ('|u1', (camera['size'],), picture(camera, 3 * step)),
            'big_frame': ('|u1', (camera['size'],), picture(camera, 5 * step)),
            'tfm': ('<f4', (3, 3), matrix(ROAD, camera)),
            'big_tfm': ('<f4', (3, 3), matrix(WIDE, camera)),
            'desire': ('<f4', (1, 8), bytes(32)),
            'traffic_convention': ('<f4', (1, 2), struct.pack('<2f', 0, 1)),
            'cabin_frame': ('|u1', (camera['size'],), picture(camera, 7 * step)),
            'cabin_tfm': ('<f4', (3, 3), matrix(CABIN, camera, (1440, 960))),
            'calib': ('<f4', (1, 3), bytes(12)),
        }
        unknown = [name for name in wanted if name not in inputs]
        if unknown:
            sys.exit('no input %s; there are: %s' % (', '.join(unknown), ', '.join(inputs)))
        for name in wanted or DRIVING_INPUTS:
            descr, shape, data = inputs[name]
            write_npy(os.path.join(folder, name + '.npy'), descr, shape, data)


if __name__ == '__main__':
    main()
