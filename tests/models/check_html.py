#!/usr/bin/env python3
"""`ingot inspect --html`: one well-formed page that holds every input, output and call, needs nothing
from elsewhere, shows hostile names as text, and is the same each time.

usage: check_html.py MODEL...
"""
import json
import os
import sys
import xml.etree.ElementTree as xml

import model_cases
import onnx_file
import support

HOSTILE = '</title><script>alert("1")</script>&amp;\'\x01\n\U0001F697 ' + 'x' * 300


def hostile_model(folder):
    path = os.path.join(folder, 'hostile.onnx')
    with open(path, 'wb') as file:
        file.write(onnx_file.model(
            [onnx_file.node('Relu', [HOSTILE], 'inner' + HOSTILE),
             onnx_file.node('GlobalAveragePool', ['inner' + HOSTILE], 'out' + HOSTILE)],
            [], [(HOSTILE, (1, 3, 4, 4))], [('out' + HOSTILE, (1, 3, 1, 1))]))
    return path


def page(artifact, folder, *options):
    path = os.path.join(folder, 'page.html')
    printed = support.run([support.INGOT, 'inspect', artifact, '--html', path] + list(options))
    if printed:
        sys.exit('inspect --html prints: ' + printed)
    with open(path, 'rb') as file:
        return file.read()


def texts(element):
    return {text for one in element.iter() for text in (one.text, one.tail) if text}


def table_rows(root, heading):
    """Of the table after a heading, without its head."""
    body = list(root.find('body'))
    at = next(i for i, one in enumerate(body) if one.text == heading)
    return body[at + 1].findall('tr')[1:]


def check(title, artifact, folder):
    data = page(artifact, folder)
    if data != page(artifact, folder):
        sys.exit('%s: another page the second time' % title)
    for word in (b'http', b'<script', b'src=', b'href=', b'url(', b'@import', b'0x7f'):
        if word in data:
            sys.exit('%s: the page holds %s' % (title, word.decode()))
    root = xml.fromstring(data)  # fails where a tag is not closed or a character is none
    inspect = json.loads(support.run([support.INGOT, 'inspect', artifact, '--json', '--calls',
                                      '--buffers']))
    variant = inspect['variants'][0]
    slots, calls = table_rows(root, 'Inputs, states, outputs'), table_rows(root, 'Calls')
    if len(slots) != len(variant['slots']) or len(calls) != variant['calls']:
        sys.exit('%s: %d slots and %d calls on the page' % (title, len(slots), len(calls)))
    names = texts(root)
    for slot in variant['slots']:
        shown = slot['name'].replace('\n', '\\n').replace('\x01', '\\x01')
        if shown not in names:
            sys.exit('%s: %r is not on the page' % (title, shown))
    planned = sum(one['arena'] is not None and one['bytes'] > 0 for one in variant['buffers'])
    drawn = sum((one.find('title') is not None) for one in root.iter('rect'))
    if drawn != planned:
        sys.exit('%s: %d of %d buffers are drawn' % (title, drawn, planned))
    times = os.path.join(folder, 'times.json')
    with open(times, 'w') as file:
        file.write(support.run([support.INGOT, 'bench', artifact, '--per-call', '--json', '--runs',
                                '3', '--allow-unsigned']))
    timed = xml.fromstring(page(artifact, folder, '--times', times))
    if len(table_rows(timed, 'Calls')[0]) != len(calls[0]) + 2:
        sys.exit('%s: no times on the page' % title)
    print('%s: %d bytes, %d calls, %d buffers' % (title, len(data), len(calls), drawn))


def main():
    folder = support.work_folder('html')
    sources = [('hostile', hostile_model(folder), [])]
    for title in sys.argv[1:]:
        model = model_cases.find(title)
        sources.append((title, model.path, model.compile_arguments(folder)))
    for title, path, arguments in sources:
        artifact = os.path.join(folder, title + '.ingot')
        support.run([support.INGOT, 'compile', path, '-o', artifact, '--target', 'host', '--check',
                     'off', '--unsigned', '--no-progress'] + arguments)
        check(title, artifact, folder)


if __name__ == '__main__':
    main()
