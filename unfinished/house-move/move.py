"""Move the house: python3 move.py CHECKOUT. One pass over a tree in the old layout, its files committed."""
import ast, os, pathlib, re, subprocess, sys, collections
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import rooms
from texts import INITS, EDITS, NEW_FILES, DELETE, references, contracts
root = pathlib.Path(sys.argv[1]).resolve(); os.chdir(root)
P = pathlib.Path
def git(*a): return subprocess.run(['git', *a], capture_output=True, text=True, check=True).stdout
TOPS = ('streams', 'agents', 'store', 'codecs')
if P('streams/lane/__init__.py').exists(): sys.exit('moved already')
tracked = git('ls-files').split('\n')[:-1]
warnings = []
def modname(path):
    parts = list(P(path).with_suffix('').parts)
    if parts[-1] == '__init__': parts.pop()
    return '.'.join(parts)
# ---------------------------------------------------------------- the table, completed
table = rooms.parse(rooms.PRODUCT); tests = rooms.parse(rooms.TESTS)
moves = {}          # path -> path
modules = {}        # old module -> new module (product and tests, packages too)
for f in tracked:
    if not f.endswith('.py'): continue
    top = f.split('/')[0]
    m = modname(f); is_pkg = f.endswith('/__init__.py')
    if top in TOPS:
        if is_pkg:
            if m not in rooms.PACKAGES: warnings.append(f'package {m} is not in the table'); continue
            new = rooms.PACKAGES[m]; modules[m] = new; moves[f] = new.replace('.', '/') + '/__init__.py'; continue
        if m not in table:
            pkg = m.rpartition('.')[0]
            table[m] = f'{rooms.DEFAULT[pkg]}.{m.rpartition(".")[2]}'; warnings.append(f'{m} is not in the table: put to {table[m]}')
        modules[m] = table[m]; moves[f] = table[m].replace('.', '/') + '.py'
    elif top == 'tests':
        if f.startswith(('tests/bench/', 'tests/chaos/')) or f == 'tests/__init__.py' or f in rooms.TEST_DATA or any(f.startswith(d + '/') for d in rooms.TEST_DATA):
            continue
        if is_pkg: continue
        if m not in tests:
            pkg = m.rpartition('.')[0]
            if pkg in rooms.TEST_DEFAULT:
                stem = m.rpartition('.')[2]
                tests[m] = f'{rooms.TEST_DEFAULT[pkg] if stem.startswith(("test_", "conftest")) or rooms.TEST_DEFAULT[pkg] == pkg else "tests.support"}.{stem}'
            else: tests[m] = m
            warnings.append(f'{m} is not in the table: put to {tests[m]}')
        modules[m] = tests[m]; moves[f] = tests[m].replace('.', '/') + '.py'
for m in [*rooms.parse(rooms.PRODUCT), *rooms.parse(rooms.TESTS)]:
    if m not in modules: warnings.append(f'the table has {m}, which is not there')
c = collections.Counter(moves.values())
for new, n in c.items():
    if n > 1: sys.exit(f'two files go to {new}')
# package re-export inits: `tests.delivery` etc. are packages that vanish
data = dict(rooms.DATA) | rooms.TEST_DATA
for f in tracked:
    for old, new in data.items():
        if f == old or f.startswith(old + '/'): moves[f] = new + f[len(old):]
# test data that nobody placed, beside tests that move
for f in tracked:
    if f.startswith('tests/') and f not in moves and not f.endswith('/__init__.py') and not f.startswith(('tests/bench/', 'tests/chaos/', 'tests/codecs/recorded/')) and f.endswith(('.py',)) is False:
        warnings.append(f'data {f} stays where it is')
# ---------------------------------------------------------------- imports of python files
old_modules = set(modules) | {m for m in rooms.PACKAGES}
def is_test_pkg(name): return name == 'tests' or name.startswith('tests.')
def relative(frm_pkg, to):          # frm_pkg: list of parts of the package importing; to: parts of target module
    a, b = frm_pkg.split('.'), to.split('.')
    common = 0
    while common < min(len(a), len(b)) and a[common] == b[common]: common += 1
    return '.' * (len(a) - common + 1) + '.'.join(b[common:])
def rewrite_imports(text, old_path, new_path):
    tree = ast.parse(text); lines = text.splitlines(keepends=True); edits = []
    in_test = old_path.startswith('tests/')
    old_pkg = '.'.join(P(old_path).parent.parts); new_pkg = '.'.join(P(new_path).parent.parts)
    for n in ast.walk(tree):
        if not isinstance(n, ast.ImportFrom): continue
        if n.level == 0 and n.module and n.module.startswith('ticketgate'):
            base = n.module.removeprefix('ticketgate').lstrip('.'); prefix = 'ticketgate.'
        elif n.level and in_test:
            parts = old_pkg.split('.'); parts = parts[:len(parts) - n.level + 1]
            base = '.'.join(parts + ([n.module] if n.module else [])); prefix = None
        else: continue
        groups = {}
        for a in n.names:
            full = f'{base}.{a.name}' if base else a.name
            if full in modules and (base not in modules or full != base):
                new = modules[full]; pkg, _, name = new.rpartition('.')
                alias = a.asname or (a.name if name != a.name else None)
                groups.setdefault(pkg, []).append(name + (f' as {alias}' if alias and alias != name else ''))
            else:
                target = modules.get(base, base)
                groups.setdefault(target, []).append(a.name + (f' as {a.asname}' if a.asname else ''))
        ind = ' ' * n.col_offset; out = ''
        for target, names in groups.items():
            where = (prefix + target).rstrip('.') if prefix else relative(new_pkg, target)
            line = f"{ind}from {where} import {', '.join(names)}\n"
            out += line
        old = ''.join(lines[n.lineno - 1:n.end_lineno])
        tail = re.search(r'\)?\s*(#[^\n]*)\n$', old)
        if tail: out = out.rstrip('\n') + '  ' + tail[1] + '\n'
        unchanged = prefix and len(groups) == 1 and (prefix + next(iter(groups))).rstrip('.') == n.module and all(' as ' not in x or True for x in groups[next(iter(groups))]) and [x for x in groups[next(iter(groups))]] == [a.name + (f' as {a.asname}' if a.asname else '') for a in n.names]
        if unchanged: continue
        edits.append((n.lineno, n.end_lineno, out))
    for a, b, o in sorted(edits, reverse=True): lines[a - 1:b] = ['\x00' + o]     # marked: not to be mapped again
    return ''.join(lines)
dotted = re.compile(r'(?<![\w.])(ticketgate|tests)\.((?:\w+\.)*\w+)')
def map_dotted(m):
    whole = m.group(2).split('.') if m.group(1) == 'ticketgate' else ['tests', *m.group(2).split('.')]
    for k in range(len(whole), 0, -1):
        name = '.'.join(whole[:k])
        if name in modules:
            new = modules[name] + ''.join('.' + x for x in whole[k:])
            return 'ticketgate.' + new if m.group(1) == 'ticketgate' else new
    return m.group(0)
def rewrite_dotted(text):
    return ''.join(line if line.startswith('\x00') else dotted.sub(map_dotted, line) for line in text.splitlines(keepends=True)).replace('\x00', '')
path_re = re.compile(r'(?<![\w/.-])((?:streams|agents|store|codecs|tests)/[\w./-]*\w)')
dirs = {}
def map_path(m):
    p = m.group(1)
    for cand in (p, p.rstrip('.')):
        if cand in moves: return moves[cand] + p[len(cand):]
        if cand + '/__init__.py' in moves and cand not in TOPS:
            new = str(P(moves[cand + '/__init__.py']).parent); return new + p[len(cand):]
        for old, new in data.items():
            if cand.startswith(old + '/') or cand == old: return new + p[len(old):]
    for old, new in (('tests/systemone', 'tests/streams/process/web'), ('tests/delivery/model', 'tests/streams/lane/model'), ('tests/effects/model', 'tests/agents/effects/model'),('streams/embedded', 'streams/parts')):
        if p == old or p.startswith(old + '/'): return new + p[len(old):]
    return p
# bare names: `conditions.py` in a comment, where the file's name changes
bare = {}
for old, new in moves.items():
    if old.endswith('.py') and not old.endswith('__init__.py'):
        bare.setdefault(P(old).name, set()).add(P(new).name)
known = {n for s in bare.values() for n in s}
renamed = {old: next(iter(new)) for old, new in bare.items() if len(new) == 1 and old not in new}
for old, new in bare.items():
    if len(new) > 1: warnings.append(f'file name {old} becomes {sorted(new)}: comments that name it are left')
bare_re = re.compile(r'(?<![\w/.`-])(' + '|'.join(map(re.escape, renamed)) + r')(?!\w)')
bare_tick = re.compile(r'`(' + '|'.join(map(re.escape, renamed)) + r')`')
# ---------------------------------------------------------------- do it
texts = {}
SKIP = re.compile(r'(deploy/constraints.*\.txt|.*\.onnx|.*tokenizer\.json|.*\.jsonl|LICENSE)$')
for f in tracked:
    if SKIP.search(f) or not P(f).is_file(): continue
    try: t = P(f).read_text(encoding='utf-8')
    except UnicodeDecodeError: continue
    new = moves.get(f, f)
    if f.endswith('.py'): t = rewrite_imports(t, f, new)
    if f != 'CHANGELOG.md':
        t = rewrite_dotted(t)
        t = path_re.sub(map_path, t)
        if f.endswith(('.py', '.md', '.toml')): t = bare_tick.sub(lambda m: f'`{renamed[m.group(1)]}`', bare_re.sub(lambda m: renamed[m.group(1)], t))
    t = t.replace('\x00', '')
    if f.startswith('tests/') and f.endswith('.py') and new != f:
        deeper = len(P(new).parts) - len(P(f).parts)
        t = re.sub(r'(__file__\)(?:\.resolve\(\))?\.parents\[)(\d)(\])', lambda m: m[1] + str(int(m[2]) + deeper) + m[3], t)
    if f.startswith(TOPS + ('tests', 'deploy', 'Makefile', 'pyproject')): t = references(new, t, warnings)
    texts[f] = t
for old, new in moves.items():
    if old != new:
        P(new).parent.mkdir(parents=True, exist_ok=True); git('mv', '-k', old, new)
        if not P(new).exists(): sys.exit(f'could not move {old} to {new}')
for f, t in texts.items():
    P(moves.get(f, f)).write_text(t, encoding='utf-8')
# lines that a longer path made too long
def rewrap(t):
    out = []
    for line in t.split('\n'):
        while len(line) > 120 and not line.rstrip().endswith(('"', "'", ',', '(', '{')) and re.match(r'\s*(#|[A-Za-z`"(])', line) and '  ' not in line.strip() and 'noqa' not in line and 'import ' not in line:
            cut = line.rfind(' ', 0, 119); ind = re.match(r'\s*(# )?', line)[0]
            out.append(line[:cut]); line = ind + line[cut + 1:]
        out.append(line)
    return '\n'.join(out)
for f in list(texts):
    if f.endswith('.py'):
        t = texts[f]
        if any(len(x) > 120 for x in t.split('\n')): P(moves.get(f, f)).write_text(rewrap(t), encoding='utf-8')
# packages
for new in sorted({str(P(n).parent) for n in moves.values() if n.endswith('.py')}):
    p = P(new)
    while p.parts and p.parts[0] in (*TOPS, 'tests'):
        init = p / '__init__.py'
        if not init.exists(): init.write_text('')
        p = p.parent
for f in tracked:      # test packages left empty
    if f.startswith('tests/') and f.endswith('/__init__.py') and not f.startswith(('tests/bench', 'tests/chaos')) and P(f).exists():
        d = P(f).parent
        rest = [x for x in d.rglob('*') if x.is_file() and '__pycache__' not in x.parts and x.name != '__init__.py']
        if not rest: git('rm', '-qf', f)
for f in DELETE:
    if P(f).exists(): git('rm', '-qf', f)
for name, doc in INITS.items():
    p = P(name.replace('.', '/')) / '__init__.py'
    if not p.exists(): warnings.append(f'no package {name}'); continue
    t = p.read_text()
    if t.strip():
        tree = ast.parse(t)
        if ast.get_docstring(tree) is not None:
            e = tree.body[0]; lines = t.splitlines(keepends=True); t = ''.join(lines[:e.lineno - 1] + lines[e.end_lineno:])
    p.write_text('"""' + doc.strip() + '\n"""\n' + (('\n' + t.lstrip('\n')) if t.strip() else ''))
for p in sorted({str(P(n).parent) for n in moves.values() if n.endswith('.py') and n.split('/')[0] in TOPS}):
    if p.replace('/', '.') not in INITS: warnings.append(f'package {p} has no text')
for f, t in NEW_FILES().items():
    P(f).parent.mkdir(parents=True, exist_ok=True); P(f).write_text(t)
for f, pairs in EDITS.items():
    if not P(f).exists(): warnings.append(f'EDIT: no file {f}'); continue
    t = P(f).read_text()
    for a, b in pairs:
        if a not in t: warnings.append(f'EDIT {f}: not found: {a[:80]!r}'); continue
        t = t.replace(a, b)
    P(f).write_text(t)
# pyproject packages
packages = sorted('ticketgate.' + '.'.join(i.parent.parts) for top in TOPS for i in P(top).rglob('__init__.py') if '__pycache__' not in i.parts)
t = P('pyproject.toml').read_text()
t = re.sub(r'packages = \[\n.*?\n\]', 'packages = [\n' + ''.join(f'    "{p}",\n' for p in packages) + ']', t, count=1, flags=re.S)
t = t[:t.index('[tool.importlinter]')] + contracts
P('pyproject.toml').write_text(t)
git('add', '-A')
# ---------------------------------------------------------------- look again
left = [m for m in modules if m not in modules.values() and m.count('.') and not m.startswith('tests')]
here = git('ls-files').split('\n')[:-1]
names = {P(f).name for f in here}
for f in here:
    if SKIP.search(f) or f == 'CHANGELOG.md' or not P(f).is_file(): continue
    try: t = P(f).read_text()
    except UnicodeDecodeError: continue
    found_names = set(re.findall(r'ticketgate\.((?:\w+\.)*\w+)', t))
    for m in left:
        if any(x == m or x.startswith(m + '.') for x in found_names) and not any(v == m or v.startswith(m + '.') for v in modules.values()): warnings.append(f'{f} still names {m}')
    if f.split('/')[0] in (*TOPS,):
        for n in set(re.findall(r'(?<![\w/.*-])(\w+\.py)\b', t)):
            if n not in names: warnings.append(f'{f} names {n}, which is not there')
    for p in set(path_re.findall(t)):
        q = p.rstrip('.')
        if not P(q).exists() and not any(ch in q for ch in '*<{') : warnings.append(f'{f}: no {q}')
P('/work/tools-r/moves.txt').write_text('\n'.join(f'{a}\t{b}' for a, b in sorted(moves.items())))
print('\n'.join(warnings)); print(len(moves), 'files,', len(warnings), 'warnings')
