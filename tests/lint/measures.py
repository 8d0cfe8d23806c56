#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the shape of the source tree: directory and header sizes, function names and lengths, opening lines.

usage: measures.py [--list WHAT] [DIRECTORY...]   WHAT: names (functions whose name is not unique),
                                                  public (public functions not named after their file), headers, and
A function definition begins in the first column, and its braces stand alone in the first column.
"""
import collections, os, re, subprocess, sys

TOP = os.environ.get('top_srcdir', '.')
DEF = re.compile(r'^(?!(?:typedef|struct|enum|union|else|return|#)\b[^(]*$)([A-Za-z_][\w\s\*\(\),"]*?[\s\*])?(\w+)\s*\((.*)$')
WORD = {'if', 'for', 'while', 'switch', 'return', 'sizeof', 'else', '__attribute__'}


def sources(dirs):
    for d in dirs:
        for base, _, names in os.walk(os.path.join(TOP, d)):
            for n in sorted(names):
                if n.endswith(('.c', '.h')):
                    yield os.path.relpath(os.path.join(base, n), TOP)


def functions(path):
    """Yields (name, static, lines) for each function that the file defines."""
    head, start = None, None
    with open(os.path.join(TOP, path), encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            if re.match(r'^[A-Za-z_].*\(', line) and not line.rstrip().endswith(';'):
                head = line
            elif line.startswith('{') and head:
                start = number
            elif line.startswith('}') and start:
                text = re.sub(r'__attribute__\s*\(\(.*?\)\)\s*', '', head)
                m = re.match(r'^(.*?)\b(\w+)\s*\(', text)
                if m and m.group(2) not in WORD:
                    yield m.group(2), bool(re.match(r'^(static|AUTO_DEFINE)', head)), number - start - 1
                head = start = None
            if line.startswith(('}', ';')):
                start = None


def opening(path):
    with open(os.path.join(TOP, path), encoding='utf-8') as f:
        text = f.read(2000)
    text = re.sub(r'^/\* SPDX.*?\*/\s*', '', text)
    m = re.match(r'/\*(.*?)\*/', text, re.S)
    return ' '.join(m.group(1).replace('*', ' ').split()) if m else ''


def stems(path):
    s = os.path.basename(path).rsplit('.', 1)[0]
    out = {s}
    for end in ('_private', '_parts'):
        if s.endswith(end):
            out.add(s[:-len(end)])
    for x in list(out):
        out.add(x[:-1] if x.endswith('s') else x + 's')
        if x.endswith('ies'):
            out.add(x[:-3] + 'y')
        if x.endswith('y'):
            out.add(x[:-1] + 'ies')
    return out


def declared(files):
    """Maps each function to the headers that declare it."""
    where = collections.defaultdict(set)
    for p in files:
        if p.endswith('.h'):
            with open(os.path.join(TOP, p), encoding='utf-8') as f:
                for m in re.finditer(r'^(?![\s#/*}]).*?\b(\w+)\(', f.read(), re.M):
                    where[m.group(1)].add(p)
    return where


def named_after(name, path, headers):
    for p in [path, *headers]:
        if any(name == s or name.startswith(s + '_') for s in stems(p)):
            return True
    return False


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0


def main():
    args, what = sys.argv[1:], None
    if args[:1] == ['--list']:
        what, args = args[1], args[2:]
    dirs = args or ['src', 'cmd']
    files = list(sources(dirs))
    everything = list(sources(['src', 'cmd']))
    header_of = declared(everything)
    per_dir = collections.Counter(os.path.dirname(p) for p in files)
    headers = {p: sum(1 for _ in open(os.path.join(TOP, p))) for p in files if p.endswith('.h')}
    found = [(n, st, ln, p) for p in files for n, st, ln in functions(p)]
    count = collections.Counter(n for n, *_ in found)
    unique = sum(1 for n, *_ in found if count[n] == 1)
    public = [(n, p) for n, st, ln, p in found if not st and n != 'main']
    bad = [(n, p) for n, p in public if not named_after(n, p, header_of[n])]
    both = [p for p in files if re.search(r'\band\b', opening(p))]
    wide = sum(1 for p in files for line in open(os.path.join(TOP, p)) if len(line.rstrip('\n').expandtabs(8)) > 100)
    lengths = [ln for _, _, ln, _ in found]
    if what == 'names':
        for n, st, ln, p in sorted(found):
            if count[n] > 1:
                print(p, n, sep='\t')
    elif what == 'public':
        for n, p in sorted(bad, key=lambda x: (x[1], x[0])):
            print(p, n, ' '.join(sorted(header_of[n])), sep='\t')
    elif what == 'headers':
        for p, n in sorted(headers.items(), key=lambda x: -x[1]):
            print(n, p, sep='\t')
    elif what == 'and':
        for p in both:
            print(p, opening(p), sep='\t')
    else:
        big = per_dir.most_common(1)[0]
        top = max(headers.items(), key=lambda x: x[1])
        print(f'files per directory: {len(per_dir)} directories, largest {big[0]} with {big[1]} files')
        print(f'headers: {len(headers)}, largest {top[0]} with {top[1]} lines, {sum(1 for v in headers.values() if v > 200)} over 200 lines')
        print(f'function names: {len(found)} functions, {100 * unique / len(found):.1f} % unique')
        print(f'public functions named after their file or header: {len(public) - len(bad)} of {len(public)}, {100 * (len(public) - len(bad)) / len(public):.1f} %')
        print(f'lines over 100 columns: {wide}')
        print(f'function length: median {percentile(lengths, .5)}, 90th percentile {percentile(lengths, .9)}, longest {max(lengths)}')
        print(f'opening lines with "and": {len(both)} of {len(files)}, {100 * len(both) / len(files):.1f} %')


main()
