"""What scripts/bench computes: turns of sides that sleep, means and bars of made-up rows, files."""
import json
import os
import statistics
import sys
import xml.etree.ElementTree

import layer_cases
import onnx_file
import support
from turns import Failure, Sides, processors, quantile

sys.path.insert(0, os.path.join(support.ROOT, 'scripts'))
import bench_figures as figures  # noqa: E402

SLEEPER = '''
import json, sys, time
print('{"ready":true}', flush=True)
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        start = time.monotonic()
        time.sleep(%g)
        times.append(1e3 * (time.monotonic() - start))
    print(json.dumps({'ms': times}), flush=True)
'''


def expect(found, wanted):
    if found != wanted:
        sys.exit('found %r instead of %r' % (found, wanted))


def sleeper(seconds):
    return [sys.executable, '-c', SLEEPER % seconds]


def check_turns():
    with Sides([sleeper(0.005), sleeper(0.02)], processors(1)) as sides:
        (short, _), (long, _) = sides.back_to_back(2)
        expect(statistics.median(long) / statistics.median(short) > 2, True)
        expect([len(times) for times in sides.paced(5, 50, 2)], [5, 5])
    try:
        Sides([sleeper(0), [sys.executable, '-c', 'import sys; sys.exit("no such option")']],
              processors(1))
        sys.exit('a side that ends was not noticed')
    except Failure as failure:
        expect('no such option' in str(failure), True)
    expect([quantile([3, 1, 2, 4], share) for share in (0, 0.5, 0.51, 1)], [1, 2, 3, 4])
    expect(processors(100000), None)


def row(title, kind, ort_ms, ratio, **more):
    return dict({'title': title, 'kind': kind, 'generated': True, 'tolerance': 1e-4, 'error': 1e-6,
                 'verdict': 'pass', 'compile_s': 2.0, 'model_bytes': 10, 'ms': ort_ms / ratio,
                 'ort_ms': ort_ms, 'ratio': ratio}, **more)


def check_bars(folder):
    tail = {'frames': 9, 'p50': 1.0, 'p999': 2.0, 'max': 2.0, 'tail': 2.0}
    threads = {'ms_one': 4.0, 'ms': 2.0, 'scaling': 2.0, 'fma_scaling': 2.0, 'scaling_share': 1.0,
               'convolutional': True, 'ort_ms': 1.0, 'ratio': 0.5, 'waited': 0}
    result = {'date': '2000-01-01', 'processor': 'none', 'target': 'x86-64-v3', 'onnxruntime': '1',
              'thread_count': 2, 'models': [
                  row('unet-o17', 'float32', 10, 12.0, threads=threads),  # counts as 3
                  row('a', 'float32', 10, 3 / 4, pace={'ours': tail, 'ort': dict(tail, tail=3.0)}),
                  row('small', 'float32', 0.4, 100.0),  # too short to count
                  row('a <&>', 'float16', 1, 2.0, error=1, compile_s=40.0, model_bytes=20),
                  row('mlp-fp16', 'mlp', 1, 4.0, bandwidth_share=0.9)],
              'layers': [{'title': 'x', 'target': 'x86-64-v3', 'kind': 'dense', 'share': 0.79},
                         {'title': 'y', 'target': 'x86-64-v3', 'kind': 'other', 'failure': 'none'}]}
    result['bars'] = figures.bars(result, ('models', 'threads', 'layers', 'pace'))
    found = [(round(bar['value'], 3) if bar['value'] is not None else None, bar['passed'])
             for bar in result['bars']]
    expect(found, [
        (1, False), (40, False), (40, False),  # outside of tolerance, compile seconds
        (1.5, True), (0.75, False), (6.375, True), (0.75, False),  # float32
        (None, None), (2, True), (4, True), (0.9, True),  # quantized, float16, one row
        (0.5, False), (1, True), (1, None),  # threads
        (0.79, False), (0, False),  # layers
        (2, True)])  # pace
    expect([bar['passed'] for bar in figures.floor(result)], [True])

    path = os.path.join(folder, 'bench.')
    figures.write_json(path + 'json', figures.without_calls(result))
    again = figures.read(path + 'json')
    expect([row['ratio'] for row in again['models']], [row['ratio'] for row in result['models']])
    expect(figures.change(dict(result['models'][1], ratio=1.5), again), 100)
    expect(figures.change(row('new', 'float32', 1, 1), again), None)
    figures.write_svg(path + 'svg', result)
    texts = [one.text for one in xml.etree.ElementTree.parse(path + 'svg').iter()
             if one.tag.endswith('text')]
    expect('a <&>' in texts and 'mean of float32 1.50' in texts, True)
    figures.write_markdown(path + 'md', result)
    figures.print_sections(result, 5, json.loads(json.dumps(again)))


def check_layers(folder):
    path = os.path.join(folder, 'layer.onnx')
    for layer in layer_cases.cases():
        with open(path, 'wb') as file:
            file.write(layer.data)
        support.run([support.INGOT, 'check-model', path])
    with open(path, 'wb') as file:
        file.write(layer_cases.conv(64, 32, 9, 9, (3, 3)).data)
    expect(onnx_file.operators(path), ['Conv'] * 3)


def main():
    folder = support.work_folder('bench_figures')
    check_turns()
    check_bars(folder)
    check_layers(folder)


if __name__ == '__main__':
    main()
