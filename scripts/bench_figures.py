"""What scripts/bench does with its rows: bars, tables, JSON, Markdown, a plot."""
import html
import json
import math
import os
import statistics

COUNTED_FROM, COUNTED_UP_TO = 0.5, 3  # milliseconds of ONNX Runtime, ratio

# (key, heading, width, format); negative widths: to the left
COLUMNS = (
    ('title', 'model', -34, '%s'), ('kind', 'kind', -9, '%s'),
    ('compile_s', 'compile s', 9, '%.1f'), ('peak_mb', 'peak MB', 7, '%.0f'),
    ('calls', 'calls', 5, '%d'), ('arena', 'arena', 9, '%d'), ('weights', 'weights', 9, '%d'),
    ('file_bytes', 'file', 9, '%d'), ('error', 'error', 7, '%.2g'), ('ms', 'ms', 8, '%.3f'),
    ('ort_ms', 'ort ms', 8, '%.3f'), ('ratio', 'ratio', 5, '%.2f'),
    ('waited', 'waits', 5, '%.0f%%'), ('change', 'change', 6, '%+.0f%%'),
    ('verdict', 'verdict', -7, '%s'))
THREAD_COLUMNS = (
    ('title', 'model', -34, '%s'), ('ms_one', '1 thread ms', 11, '%.3f'), ('ms', 'ms', 8, '%.3f'),
    ('ort_ms', 'ort ms', 8, '%.3f'), ('ratio', 'ratio', 5, '%.2f'),
    ('scaling', 'scaling', 7, '%.2f'), ('fma_scaling', 'of FMA', 7, '%.2f'),
    ('scaling_share', 'share', 6, '%.2f'), ('waited', 'waits', 5, '%.0f%%'))
CALL_COLUMNS = (
    ('name', 'call', -48, '%s'), ('ms', 'ms', 8, '%.4f'), ('gflops', 'GFLOP/s', 8, '%.1f'),
    ('gbytes_per_s', 'GB/s', 8, '%.1f'), ('share', 'share', 6, '%.2f'),
    ('lost_ms', 'lost ms', 8, '%.4f'))
LAYER_COLUMNS = (
    ('title', 'layer', -40, '%s'), ('target', 'target', -10, '%s'), ('kind', 'kind', -6, '%s'),
    ('ms', 'ms', 8, '%.4f'), ('gflops', 'GFLOP/s', 8, '%.1f'), ('gbytes_per_s', 'GB/s', 8, '%.1f'),
    ('share', 'share', 6, '%.2f'), ('failure', '', -1, '%s'))
PACE_COLUMNS = (
    ('title', 'model', -34, '%s'), ('side', 'side', -5, '%s'), ('frames', 'frames', 6, '%d'),
    ('p50', 'p50 ms', 8, '%.3f'), ('p999', 'p99.9 ms', 8, '%.3f'), ('max', 'max ms', 8, '%.3f'),
    ('tail', 'p99.9 / p50', 11, '%.2f'))
BAR_COLUMNS = (
    ('name', 'figure', -67, '%s'), ('value', 'value', 7, '%.3g'), ('sign', '', 2, '%s'),
    ('bar', 'bar', 5, '%.3g'), ('was', 'last', 6, '%.3g'), ('verdict', 'verdict', -12, '%s'),
    ('detail', 'of', -1, '%s'))


def headings(columns=COLUMNS):
    return [heading for _, heading, _, _ in columns]


def cells(row, columns=COLUMNS):
    return [form % row[key] if row.get(key) is not None else '' for key, _, _, form in columns]


def padded(texts, columns):
    return '  '.join(text.ljust(-width) if width < 0 else text.rjust(width)
                     for text, (_, _, width, _) in zip(texts, columns)).rstrip()


def print_table(title, rows, columns):
    print('\n' + title)
    print(padded(headings(columns), columns))
    for row in rows:
        print(padded(cells(row, columns), columns))


# --- bars

def geometric_mean(ratios):
    return math.exp(statistics.fmean(math.log(min(ratio, COUNTED_UP_TO)) for ratio in ratios)) \
        if ratios else None


def counted(rows):
    """{title: ratio} of those that count."""
    return {row['title']: row['ratio'] for row in rows
            if row.get('ratio') and row['ort_ms'] >= COUNTED_FROM}


def bar(name, value, least=None, most=None, detail=''):
    """A figure with what it must reach, if anything; what was not measured did not reach it."""
    limit = least if least is not None else most
    sign = '' if limit is None else '>=' if most is None else '<='
    passed = None
    verdict = 'not measured' if value is None else ''
    if limit is not None:
        passed = value is not None and (value >= limit if most is None else value <= limit)
        verdict = verdict or ('pass' if passed else 'FAIL')
    return {'name': name, 'value': value, 'sign': sign, 'bar': limit, 'passed': passed,
            'verdict': verdict, 'detail': detail}


def least_of(values):
    """(key, value) of the least; (nothing, None) of none."""
    return min(values.items(), key=lambda item: item[1]) if values else ('none', None)


def of_kind(result, kind):
    return [row for row in result['models'] if row['kind'] == kind]


def model_bars(result):
    ratios = counted(of_kind(result, 'float32'))
    no_unet = [ratio for title, ratio in ratios.items() if not title.startswith('unet')]
    least = least_of(ratios)
    yield bar('float32, one thread: geometric mean', geometric_mean(ratios.values()), least=1.5,
              detail='%d ratios' % len(ratios))
    yield bar('float32, one thread: the same without unet', geometric_mean(no_unet), least=1.4)
    yield bar('float32, one thread: median',
              statistics.median(ratios.values()) if ratios else None, least=1.4)
    yield bar('float32, one thread: least', least[1], least=0.97, detail=least[0])
    for kind, limit in (('quantized', None), ('float16', 1.5)):
        ratios = counted(of_kind(result, kind))
        yield bar(kind + ': geometric mean', geometric_mean(ratios.values()), least=limit,
                  detail='%d ratios' % len(ratios))
    product = (of_kind(result, 'mlp') or [{}])[0]
    yield bar('one-row product, float16 weights: ratio', product.get('ratio'), least=3)
    yield bar('one-row product, float16 weights: share of bandwidth',
              product.get('bandwidth_share'), least=0.8)


def compile_bars(result):
    wrong = [row['title'] for row in result['models']
             if not row.get('error', math.inf) <= row['tolerance']]
    yield bar('models outside of their tolerance', len(wrong), most=0,
              detail=', '.join(wrong) or 'of %d' % len(result['models']))
    compiled = [row for row in result['models'] if row['generated'] and 'model_bytes' in row]
    for name, key in (('largest', 'model_bytes'), ('slowest', 'compile_s')):
        row = max(compiled, key=lambda row: row[key], default={})
        yield bar('compile seconds of the %s generated model' % name, row.get('compile_s'),
                  most=30, detail=row.get('title', ''))


def thread_bars(result):
    rows = [dict(row['threads'], title=row['title']) for row in result['models']
            if 'threads' in row]
    ratios = counted(rows)
    name = '%d threads: ' % result['thread_count']
    yield bar(name + 'geometric mean', geometric_mean(ratios.values()), least=1.4,
              detail='%d ratios' % len(ratios))
    # What takes too short does not get faster by more threads.
    shares = {row['title']: row['scaling_share'] for row in rows
              if row['convolutional'] and row['ms_one'] >= COUNTED_FROM}
    least = least_of(shares)
    yield bar(name + 'scaling of convolutional models, of that of multiply-adds',
              math.exp(statistics.fmean(map(math.log, shares.values()))) if shares else None,
              least=0.85, detail='%d models' % len(shares))
    yield bar(name + 'the least of these', least[1], detail=least[0])


def layer_bars(result):
    for target in sorted({row['target'] for row in result['layers']}, reverse=True):
        for kind, name, limit in (
                ('dense', 'dense convolutions: least share of multiply-adds', 0.8),
                ('other', 'other layers: least share of the smaller bound', 0.7)):
            shares = {row['title']: row.get('share', 0) for row in result['layers']
                      if row['target'] == target and row['kind'] == kind}
            least = least_of(shares)
            missed = sum(share < limit for share in shares.values())
            yield bar('%s, %s' % (target, name), least[1], least=limit,
                      detail='%d of %d below; %s' % (missed, len(shares), least[0]))


def pace_bars(result):
    for row in result['models']:
        if 'pace' in row:
            yield bar('20 Hz: p99.9 / p50 of %s; bar: of ONNX Runtime' % row['title'],
                      row['pace']['ours']['tail'], most=row['pace'].get('ort', {}).get('tail'))


def bars(result, sections):
    found = list(compile_bars(result)) if result['models'] else []
    for section, make in (('models', model_bars), ('threads', thread_bars), ('layers', layer_bars),
                          ('pace', pace_bars)):
        if section in sections:
            found += make(result)
    return found


def floor(result):
    ratios = counted(of_kind(result, 'float32'))
    return [bar('floor: geometric mean', geometric_mean(ratios.values()), least=1,
                detail='%d ratios' % len(ratios))]


# --- text

def print_sections(result, worst, committed):
    threads = [dict(row['threads'], title=row['title']) for row in result['models']
               if 'threads' in row]
    if threads:
        print_table('%d threads' % result['thread_count'], threads, THREAD_COLUMNS)
    if result.get('threads_refused'):
        print('\n%d threads: not measured: %s' % (result['thread_count'],
                                                  result['threads_refused']))
    for row in result['models']:
        if row.get('call_shares') and worst > 0:
            print_table('%s: calls that lose most time against their bound (%d of %d)' % (
                row['title'], min(worst, len(row['call_shares'])), len(row['call_shares'])),
                row['call_shares'][:worst], CALL_COLUMNS)
    if result['layers']:
        print_table('single layers; share: dense of multiply-adds, other of the smaller bound',
                    result['layers'], LAYER_COLUMNS)
    paced = [dict(times, title=row['title'], side=side) for row in result['models']
             for side, times in row.get('pace', {}).items()]
    if paced:
        print_table('a frame each 50 ms', paced, PACE_COLUMNS)
    print_bars(result, committed)


def print_bars(result, committed):
    was = {one['name']: one['value'] for one in (committed or {}).get('bars', [])}
    if committed:
        print('\nlast committed figures: %s, %s' % (committed['date'], committed['processor']))
    else:
        print('\nno committed figures')
    title = 'figures of a part of the models' if result.get('only') else 'figures'
    print_table(title, [dict(one, was=was.get(one['name'])) for one in result['bars']],
                BAR_COLUMNS)
    passed = sum(row['verdict'] == 'pass' for row in result['models'])
    if result['models']:
        print('\n%d models pass, %d fail' % (passed, len(result['models']) - passed))


# --- files

def read(path):
    """The committed figures; None if there are none."""
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return json.load(file)


def change(row, committed):
    """How much the ratio differs from the committed one, in percent."""
    for other in (committed or {}).get('models', []):
        if other['title'] == row['title'] and row.get('ratio') and other.get('ratio'):
            return 100 * (row['ratio'] / other['ratio'] - 1)
    return None


def without_calls(result):
    models = [{key: value for key, value in row.items() if key != 'call_shares'}
              for row in result['models']]
    return dict(result, models=models)


def rounded(value):
    """Five digits say enough; JSON has no infinity."""
    if isinstance(value, float):
        return float('%.5g' % value) if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def write_json(path, result):
    """One row a line, so that differences are readable."""
    parts = []
    for key, value in rounded(result).items():
        text = json.dumps(value)
        if isinstance(value, list) and value:
            text = '[\n  ' + ',\n  '.join(json.dumps(one) for one in value) + '\n ]'
        parts.append(' %s: %s' % (json.dumps(key), text))
    with open(path, 'w') as file:
        file.write('{\n' + ',\n'.join(parts) + '\n}\n')


def markdown_table(rows, columns):
    lines = ['| ' + ' | '.join(headings(columns)) + ' |',
             '|' + ''.join(' --- |' if width < 0 else ' ---: |' for _, _, width, _ in columns)]
    for row in rows:
        lines.append('| ' + ' | '.join(text.replace('|', '\\|')
                                       for text in cells(row, columns)) + ' |')
    return '\n'.join(lines) + '\n'


def write_markdown(path, result):
    with open(path, 'w') as file:
        file.write('%s; %s; target %s, ONNX Runtime %s.\n\n' % (
            result['date'], result['processor'], result['target'], result['onnxruntime']))
        file.write(markdown_table(result['bars'], [column for column in BAR_COLUMNS
                                                   if column[0] != 'was']) + '\n')
        file.write(markdown_table(result['models'],
                                  [column for column in COLUMNS if column[0] != 'change']))
        if result['layers']:
            file.write('\n' + markdown_table(result['layers'], LAYER_COLUMNS))


COLOURS = {'float32': '#4878a8', 'other': '#9db7d1', 'float16': '#6a9c58', 'mlp': '#6a9c58',
           'quantized': '#b0743c'}
LONGEST = 4.0  # ratio at which bars are cut


def write_svg(path, result):
    """A bar for each ratio, the largest first; lines at 1 and at the mean of float32."""
    rows = sorted((row for row in result['models'] if row.get('ratio')),
                  key=lambda row: -row['ratio'])
    left, width, step, top = 240, 600, 18, 44
    height = top + step * len(rows) + 8

    def x(ratio):
        return left + width * min(ratio, LONGEST) / LONGEST

    def text(at, y, content, anchor='start', colour='#222'):
        return '<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>' % (
            at, y, anchor, colour, html.escape(content))

    def line(ratio, colour):
        return '<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s"/>' % (
            x(ratio), x(ratio), top - 6, height, colour)

    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
             'font-family="sans-serif" font-size="12">' % (left + width + 60, height),
             '<rect width="100%" height="100%" fill="white"/>',
             text(8, 16, 'times faster than ONNX Runtime %s, one thread, %s, %s' % (
                 result['onnxruntime'], result['target'], result['date']))]
    for index, (kind, colour) in enumerate((kind, colour) for kind, colour in COLOURS.items()
                                           if any(row['kind'] == kind for row in rows)):
        parts.append(text(8 + 80 * index, 34, kind, colour=colour))
    for index, row in enumerate(rows):
        y = top + step * index
        parts.append(text(left - 8, y + 12, row['title'], 'end'))
        parts.append('<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>' % (
            left, y + 2, x(row['ratio']) - left, step - 4, COLOURS[row['kind']]))
        parts.append(text(x(row['ratio']) + 5, y + 12, '%.2f' % row['ratio']))
    parts.append(line(1, '#222'))
    mean = geometric_mean(counted(of_kind(result, 'float32')).values())
    if mean:
        parts += [line(mean, '#c03030'),
                  text(x(mean) + 4, top - 8, 'mean of float32 %.2f' % mean, colour='#c03030')]
    with open(path, 'w') as file:
        file.write('\n'.join(parts + ['</svg>']) + '\n')
