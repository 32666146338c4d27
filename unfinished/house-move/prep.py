"""Before the move: part what one room shares with another. By symbol, so that it fits whatever main is by then."""
import ast, os, pathlib, re, subprocess, sys
sys.path.insert(0, '/work/tools-r')
from moved import rewrite
root = pathlib.Path(sys.argv[1]).resolve(); os.chdir(root); P = pathlib.Path
warn = []
def rd(f): return P(f).read_text()
def mod(f): return 'ticketgate.' + f[:-3].replace('/', '.').removesuffix('.__init__')
ALL = {}
def span(lines, node, prev_end):
    a = min([node.lineno] + [d.lineno for d in getattr(node, 'decorator_list', [])])
    while a - 1 > prev_end and lines[a - 2].startswith('#'): a -= 1
    return a, node.end_lineno
def names_of(n):
    if isinstance(n, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)): return [n.name]
    if isinstance(n, ast.Assign): return [t.id for t in n.targets if isinstance(t, ast.Name)]
    if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name): return [n.target.id]
    return []
def extract(src, dst, names, doc, public=(), extra='', into=False):
    """Move top-level names from src to dst (new, or appended to with into). Renames `_x` to `x` for public."""
    if not P(src).exists(): warn.append(f'extract: no {src}'); return
    t = rd(src); tree = ast.parse(t); lines = t.splitlines(keepends=True)
    take, prev = [], 0; found = set(); body = tree.body
    for i, n in enumerate(body):
        ns = names_of(n)
        if any(x in names for x in ns):
            a, b = span(lines, n, prev)
            # the docstring of a constant
            if i + 1 < len(body) and isinstance(body[i + 1], ast.Expr) and isinstance(getattr(body[i + 1], 'value', None), ast.Constant) and isinstance(n, (ast.Assign, ast.AnnAssign)):
                b = body[i + 1].end_lineno
            take.append((a, b)); found |= set(ns)
        prev = n.end_lineno
    for x in names:
        if x not in found: warn.append(f'extract {src}: no {x}')
    if not take: return
    parts = [''.join(lines[a - 1:b]) for a, b in take]
    for a, b in reversed(take): del lines[a - 1:b]
    rest = ''.join(lines); moved_text = '\n\n'.join(p.rstrip() + '\n' for p in parts)
    imports = []
    for n in body:
        if isinstance(n, (ast.Import, ast.ImportFrom)): imports.append(ast.get_source_segment(t, n))
        elif isinstance(n, ast.If) and 'TYPE_CHECKING' in ast.unparse(n.test): imports += [ast.unparse(x) for x in n.body]
    for old in public:
        new = old.lstrip('_')
        moved_text = re.sub(rf'\b{old}\b', new, moved_text); rest = re.sub(rf'\b{old}\b', new, rest)
    final = [n.lstrip('_') if n in public else n for n in names]
    used = [n for n in final if re.search(rf'\b{n}\b', re.sub(r'(?m)^ *#.*$', '', rest))]
    back = [n for n in ({x for b in body for x in names_of(b)} - set(names)) if re.search(rf'\b{n}\b', moved_text)]
    if used:
        line = f"from {mod(dst)} import {', '.join(used)}\n"
        m = list(re.finditer(r'(?m)^(from|import) [^\n]*(\([^)]*\))?\n', rest))
        last = [n for n in ast.parse(rest).body if isinstance(n, (ast.Import, ast.ImportFrom))][-1]
        ls = rest.splitlines(keepends=True); ls.insert(last.end_lineno, line); rest = ''.join(ls)
    P(src).write_text(rest)
    head = '\n'.join(x for x in imports if not x.startswith('from __future__'))
    if back: head += f"\nfrom {mod(src)} import {', '.join(sorted(back))}"
    if into:
        d = rd(dst); dl = d.splitlines(keepends=True)
        last = [n for n in ast.parse(d).body if isinstance(n, (ast.Import, ast.ImportFrom))]
        at = last[-1].end_lineno if last else 0
        own = '\n'.join(x for x in head.split('\n') if x)
        dl.insert(at, own + '\n'); P(dst).write_text(''.join(dl).rstrip() + '\n\n\n' + moved_text)
    else:
        P(dst).write_text(f'"""{doc}"""\n\nfrom __future__ import annotations\n\n{head}\n{extra}\n\n{moved_text}')
    for n in names: ALL[(mod(src), n)] = mod(dst)
def sub(f, *pairs):
    if not P(f).exists(): warn.append(f'sub: no {f}'); return
    t = rd(f)
    for a, b in pairs:
        if a not in t: warn.append(f'sub {f}: not found {a[:70]!r}'); continue
        t = t.replace(a, b)
    P(f).write_text(t)
# --- faults
extract('streams/recovery.py', 'streams/faults.py', ['Action', 'Handling', 'LaneFault'], 'What a lane does about a fault: reopen or refuse, with the word for metrics and the remedy.\n\nrecovery.py has the table from the errors of others; a fault of our own brings its row with it.\n')
# --- usage, spans, topics
extract('streams/cli/__init__.py', 'streams/usage.py', ['CommandError'], 'What a person gave cannot be used: the error that a command prints as one line.')
t = rd('streams/cli/__init__.py').replace('from ticketgate.streams.usage import CommandError\n', ''); P('streams/cli/__init__.py').write_text(t)
extract('streams/cli/span.py', 'streams/span.py', ['Beginning', 'End', 'Moment', 'Offsets', 'Count', 'From', 'Until'], 'Which part of a topic is read: where it begins, and where it ends.')
extract('streams/cli/topics.py', 'streams/kafka_errors.py', ['explain', 'require_topic'], "A broker's errors as what a person can do about them, and topics that must be there.")
extract('streams/cli/topics.py', 'streams/making_topics.py', ['USABLE_TIMEOUT_S', '_create', '_until_usable', '_is_pending'], '`topics create`: what the settings name, made if it is missing, and usable when this returns.', public=['_create'])
for f in ('streams/making_topics.py', 'streams/cli/topics.py'):
    if P(f).exists():
        t = rd(f)
        t = re.sub(r'async def create\((.*?)\) -> (.*?):\n', r'async def make_topics(\1) -> \2:\n    """Make what is missing; those that are there stay as they are. Raises `Unreachable`, `CommandError` and\n    `SettingsError`."""\n', t) if 'making' in f else t.replace('asyncio.run(create(settings', 'asyncio.run(make_topics(settings').replace('making_topics import create', 'making_topics import make_topics')
        P(f).write_text(t)
c = "# A file is its owner's own: the limit that protects from a stranger's ticket is not meant for it.\nMAX_FILE_BYTES = 64 * 2**20\n"
sub('streams/cli/files.py', ('\n' + c, ''), ('    from ticketgate.codecs.strict import Malformed, decode\n', '    from ticketgate.codecs.limits import MAX_FILE_BYTES\n    from ticketgate.codecs.strict import Malformed, decode\n'))
t = rd('codecs/limits.py')
if c not in t: P('codecs/limits.py').write_text(t.rstrip() + '\n\n' + c)
ALL[('ticketgate.streams.cli.files', 'MAX_FILE_BYTES')] = 'ticketgate.codecs.limits'
# --- sizes
extract('streams/settings.py', 'streams/setting_kinds.py', ['_UNITS', 'SettingsError', '_duration', 'Duration', '_keys', 'Keys', 'Role', '_roles', 'Roles', 'show_duration'], 'Kinds of values that settings have, how they are written, and the error that names a setting.')
extract('codecs/answers.py', 'codecs/answer_checks.py', ['ROUNDED_PROBABILITY', 'ROUNDED_SCORE', 'ARITHMETIC_SLACK', '_MAX_NAMED', 'sum_tolerance', 'score_tolerance', 'check_answers', '_plain_noul', '_check_answer', '_check_choice', '_check_score', '_check_confidence', '_distribution', '_probability', '_number', '_shown'], 'Answers from outside checked whole, before anything is decided on them.\n\nNothing here rounds, and nothing is renormalised: a number is judged as it came. The tolerances are for servers that\nround what they send; they only say when numbers contradict each other.\n')
sub('codecs/answers.py', ('    "check_answers",\n', ''), ('    "score_tolerance",\n    "sum_tolerance",\n', ''), ('"""Answers of the System One protocol: what a scorer says, checked whole before anything is decided on it.\n\nNothing here rounds, and nothing is renormalised: a number is judged, and later recorded, as it came. The\ntolerances below are for servers that round what they send; they only say when numbers contradict each other.\n"""', '"""Answers of the System One protocol: what a scorer says, and how sure it is of it.\n\nNothing here rounds, and nothing is renormalised: a number is recorded as it came. answer_checks.py has the checks.\n"""'))
doc = [n for n in ast.parse(rd('agents/policy/document.py')).body]
start = next(i for i, n in enumerate(doc) if 'Written' in names_of(n))
late = [x for n in doc[start:] for x in names_of(n)] + ['MAX_POLICY_BYTES']
extract('agents/policy/document.py', 'agents/policy/written.py', late, "The policy's text, TOML or the same document as JSON, read strictly.\n\nPromise: what comes out has exactly the fields of a policy document and their types; every problem of shape is reported\nwith its line.\n")
sub('agents/policy/document.py', ('"""The policy as written: TOML, or the same document as JSON, read strictly.\n\nPromise: what comes out has exactly the fields below and their types; every problem of shape is reported with\nits line. What the names mean (questions, atoms, references) is checked after this, in `compile`.\n', '"""The policy as written: its document, with exactly these fields and their types.\n\nwritten.py reads it; what the names mean (questions, atoms, references) is checked after that, in `compile`.\n'))
scripts = [x for n in ast.parse(rd('store/ledger.py')).body for x in names_of(n) if re.fullmatch(r'_[A-Z_]+', x) and isinstance(n, ast.Assign) and not isinstance(n.value, ast.Constant) or (isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant) and isinstance(n.value.value, str) and 'redis' in n.value.value and x)]
extract('store/ledger.py', 'store/ledger_scripts.py', scripts, "The ledger's steps as scripts, each whole or not at all. ledger.py says what they promise.", public=scripts)
E_ = 'streams/embedded/'
extract(E_ + 'process.py', E_ + 'failures.py', ['LOG_TAIL_LINES', 'PartMissing', 'PartFailed', '_tail'], 'Why a part is not there: it cannot be, or it did not come to answer.')
extract(E_ + 'process.py', E_ + 'ports.py', ['HOST', 'PORTS', '_handed_out', 'free_port', '_is_free'], "Ports of 127.0.0.1 for parts: free, and no other part's.", public=['_is_free'])
sub(E_ + 'ports.py', ('def is_free(port: int) -> bool:\n', 'def is_free(port: int) -> bool:\n    """Whether nobody listens on it."""\n'))
extract(E_ + 'kafka.py', E_ + 'broker_properties.py', ['JVM_OPTIONS', 'LOG4J', 'QUICK', '_Address', '_properties'], 'What brokers that are started here are told: quick and small, in one cluster.', public=['_Address'])
for f in (E_ + 'kafka.py', E_ + 'broker_properties.py'):
    t = re.sub(r'(?<![\w.])_properties\b', 'properties_of', rd(f)); P(f).write_text(t)
sub(E_ + 'broker_properties.py', ('class Address:\n', 'class Address:\n    """Where one broker listens, and its controller."""\n\n'), ('    def voter(self) -> str:\n', '    def voter(self) -> str:\n        """How the controllers\' quorum names it."""\n'), ('-> dict[str, str]:\n', '-> dict[str, str]:\n    """The configuration of one broker of a cluster, its data in `data`."""\n'))
# --- reading tells its caller
R = 'streams/cli/reader.py'
sub(R, ("from ticketgate.streams.cli.output import say\n", ""), ("    unreadable: list[Gap],\n) -> AsyncGenerator", "    pass_over: PassOver,\n) -> AsyncGenerator"),
 ("A batch that nobody can read is told on stderr, passed over and added to `unreadable`. Raises `Unreachable`, or\n    `CommandError` for", "A batch that nobody can read is told to `pass_over`, and is passed over unless that raises. Raises `Unreachable`,\n    or `CommandError` for"),
 ("None if follow else stops, unreadable)", "None if follow else stops, pass_over)"), ("*, unreadable: list[Gap] | None = None\n", "*, pass_over: PassOver = refuse\n"),
 ("As `read`; without a list `unreadable`, a batch", "As `read`; unless `pass_over` is given, a batch"), ("ends), ends, unreadable)", "ends), ends, pass_over)"), ("    unreadable: list[Gap] | None,\n", "    pass_over: PassOver,\n"),
 ("pass_over=partial(_pass_over, unreadable)", "pass_over=pass_over"),
 ('''def _pass_over(unreadable: list[Gap] | None, batch: UnreadableBatch) -> None:
    if unreadable is None:
        raise CommandError(f"{batch}; restore it from a healthy replica") from batch
    say(f"ticketgate: {batch}; reading goes on behind it")
    unreadable.append(Gap(batch.source, batch.offsets))


''', ''), ("from typing import assert_never\n", "from typing import TypeAlias, assert_never\n"), ("AsyncIterator, Iterable,", "AsyncIterator, Callable, Iterable,"),
 ("CLOSE_TIMEOUT_S = 3.0\n", 'CLOSE_TIMEOUT_S = 3.0\n\nPassOver: TypeAlias = Callable[[UnreadableBatch], None]\n"""Told of a batch that nobody can read; it is passed over unless this raises."""\n\n\ndef refuse(batch: UnreadableBatch) -> None:\n    """Pass over nothing. Raises `CommandError`."""\n    raise CommandError(f"{batch}; restore it from a healthy replica") from batch\n'))
sub('streams/cli/letters.py', ("*, unreadable: list[Gap]", "*, pass_over: PassOver"), ("A batch that nobody can read is told on stderr and added to\n    `unreadable`. Raises", "A batch that nobody can read is told to `pass_over`.\n    Raises"), ("unreadable=unreadable", "pass_over=pass_over"), ("import read_whole", "import PassOver, read_whole"))
P('streams/cli/unreadable.py').write_text('''"""Batches that nobody can read, told of on stderr while a command reads on behind them."""

from __future__ import annotations

from ticketgate.streams.cli.output import say
from ticketgate.streams.salvage import Gap, UnreadableBatch


class Gaps:
    """Those that were told of so far; given to what reads as its `pass_over`."""

    def __init__(self) -> None:
        self.found: list[Gap] = []

    def __call__(self, batch: UnreadableBatch) -> None:
        """Say it and keep where it is."""
        say(f"ticketgate: {batch}; reading goes on behind it")
        self.found.append(Gap(batch.source, batch.offsets))
''')
G = "from ticketgate.streams.cli.unreadable import Gaps\n"
for f in ('streams/cli/consume.py', 'streams/cli/dead_letter.py'):
    sub(f, ("    unreadable: list[Gap] = []\n", "    gaps = Gaps()\n"), ("unreadable=unreadable", "pass_over=gaps"), ("EXIT_FINDINGS if unreadable else 0", "EXIT_FINDINGS if gaps.found else 0"), ("from ticketgate.streams.salvage import Gap\n", G))
sub('streams/cli/consume.py', ("not count and not unreadable", "not count and not gaps.found"))
sub('streams/cli/sending_again.py', ("    unreadable: list[Gap] = field(default_factory=list)\n", "    unreadable: Gaps = field(default_factory=Gaps)\n"), ("len(done.unreadable)", "len(done.unreadable.found)"), ("done.held or done.unreadable", "done.held or done.unreadable.found"), ("unreadable: list[Gap]\n", "pass_over: PassOver\n"), ("letters(settings, wanted, unreadable=unreadable)", "letters(settings, wanted, pass_over=pass_over)"), ("from ticketgate.streams.salvage import Gap\n", G + "from ticketgate.streams.cli.reader import PassOver\n"))
# --- what reconcile and claims do
def hoist(f, doc_for):
    """Lazy imports of a module that is itself loaded lazily go to its head."""
    t = rd(f); tree = ast.parse(t); lines = t.splitlines(keepends=True); heads, cut = [], []
    for n in ast.walk(tree):
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for x in n.body:
                if isinstance(x, ast.ImportFrom): heads.append(ast.unparse(x) + '\n'); cut.append((x.lineno, x.end_lineno))
    for a, b in sorted(set(cut), reverse=True):
        del lines[a - 1:b]
        if a <= len(lines) and not lines[a - 1].strip(): del lines[a - 1]
    t = ''.join(lines); last = [n for n in ast.parse(t).body if isinstance(n, (ast.Import, ast.ImportFrom))][-1]
    ls = t.splitlines(keepends=True); ls[last.end_lineno:last.end_lineno] = sorted(set(heads)); t = ''.join(ls)
    for sig, d in doc_for.items():
        m = re.search(rf'(async )?def {sig}\(.*?\) -> [^\n]*:\n', t, re.S)
        if m and not t[m.end():].lstrip().startswith('"""'): t = t[:m.end()] + f'    """{d}"""\n' + t[m.end():]
    P(f).write_text(t)
extract('streams/cli/reconcile.py', 'streams/open_effects.py', ['_look', '_settle', '_reconciler'], 'The effects whose outcome is open, for who looks after a deployment: list them, read them back, settle one.\n\nPromise: nothing is sent. What was settled is in the ledger, and a worker announces it if this process cannot.\n', public=['_look', '_settle'])
hoist('streams/open_effects.py', {'settle': "Settle the effect of `key` by a person's word. Raises `CommandError`, `Unreachable` and `SettingsError`."})
extract('streams/cli/claims.py', 'streams/claim_lookup.py', ['_show'], 'One claim as it stands, for who asks what became of a ticket.')
t = rd('streams/claim_lookup.py').replace('async def _show(', 'async def look_up_claim('); P('streams/claim_lookup.py').write_text(t)
t = rd('streams/cli/claims.py').replace('claim_lookup import _show', 'claim_lookup import look_up_claim').replace('asyncio.run(_show(', 'asyncio.run(look_up_claim('); P('streams/cli/claims.py').write_text(t)
hoist('streams/claim_lookup.py', {'look_up_claim': 'The claim on a key as data: which input owns it, for how long, and which keys are derived from it; its `owner` is\n    None if there is none. Raises `Unreachable`.'})
def lazy(f, fn, module, names):
    """A command's own work is loaded when the command runs."""
    t = rd(f); line = f"from {module} import {', '.join(names)}\n"
    m = re.search(rf'(?m)^from {re.escape(module)} import [^\n(]*\n', t)
    if m: t = t[:m.start()] + t[m.end():]
    else: warn.append(f'lazy {f}: no import of {module}')
    tree = ast.parse(t); n = next(x for x in tree.body if isinstance(x, ast.FunctionDef) and x.name == fn)
    at = n.body[0].end_lineno if isinstance(n.body[0], ast.Expr) else n.body[0].lineno - 1
    ls = t.splitlines(keepends=True); ls.insert(at, f'    {line}\n'); P(f).write_text(''.join(ls))
lazy('streams/cli/reconcile.py', 'command', 'ticketgate.streams.open_effects', ['look', 'settle'])
lazy('streams/cli/claims.py', 'show', 'ticketgate.streams.claim_lookup', ['look_up_claim'])
# --- the scorers' circle
S_ = 'agents/scoring/'
extract(S_ + 'shortlisting.py', '/tmp/default_embed.py', ['default_embed'], 'x') if False else None
t = rd(S_ + 'shortlisting.py')
if 'def default_embed(' in t:
    i = t.index('def default_embed('); j = t.index('\n\n\n', i) + 3; t = t[:i] + t[j:]; P(S_ + 'shortlisting.py').write_text(t)
    P(S_ + 'shipped.py').write_text('"""The model that ships with ticketgate."""\n\nfrom pathlib import Path\n\n\ndef default_model_path() -> Path:\n    """Its folder."""\n    return Path(__file__).resolve().parent / "minilm"\n')
    sub(S_ + '__init__.py', ('def default_model_path() -> Path:\n    """The folder of the model that ships with ticketgate."""\n    return Path(__file__).resolve().parent / "minilm"\n\n\n', ''), ("Scores\n\n__all__", "Scores\nfrom ticketgate.agents.scoring.shipped import default_model_path\n\n__all__"))
    sub(S_ + 'onnx.py', ("import LazyEmbed, default_embed, score_shortlisted", "import LazyEmbed, score_shortlisted"), ("class _Row(BaseModel):", 'def default_embed() -> EmbedFn:\n    """The encoder of the model that ships with ticketgate, for scorers that have none of their own."""\n    return OnnxScorer.open(default_model_path()).embed\n\n\nclass _Row(BaseModel):'), ("from ticketgate.agents.scoring.shortlisting import", "from ticketgate.agents.scoring.shipped import default_model_path\nfrom ticketgate.agents.scoring.shortlist import EmbedFn\nfrom ticketgate.agents.scoring.shortlisting import"))
    sub(S_ + 'remote.py', ("import LazyEmbed, default_embed, score_shortlisted", "import LazyEmbed, score_shortlisted"), ("LazyEmbed(default_embed)", "LazyEmbed(_shipped_encoder)"), ("from ticketgate.agents.scoring.shortlisting import", "from ticketgate.agents.scoring.shortlist import EmbedFn\nfrom ticketgate.agents.scoring.shortlisting import"), ("def _first(errors: BaseExceptionGroup", "def _shipped_encoder() -> EmbedFn:\n    # Here, for a remote scorer that is asked no large choice loads no engine.\n    from ticketgate.agents.scoring.onnx import default_embed\n\n    return default_embed()\n\n\ndef _first(errors: BaseExceptionGroup"))
# --- whose fault it is not
extract('streams/effect_taker.py', 'streams/contention.py', ['KeyLeft'], 'Others are at work on the same effects or cases: no record is at fault for it.')
extract('streams/proposal_work.py', 'streams/contention.py', ['AttemptsContested'], '', into=True)
if not P('tests/streams/test_client_internals.py').exists(): P('tests/streams/test_client_internals.py').write_text(rd('/work/tools-r/tci.py'))
extract('store/servers.py', 'store/server_scripts.py', ['MOST_JUMP_MS', 'CANARY_LIFETIME_MS', 'CANARIES', 'REBUILDING', 'GAPS', 'LOOK_AGAIN', '_HERE', 'SOUND', 'WHOLE', '_LOOK', '_LOCK', '_BEGIN_REBUILD', '_STAND_ON', '_UNLOCK'], 'What scripts ask of the server that they run on, and the steps of a handover. servers.py says what they promise.', public=['_HERE', '_LOOK', '_LOCK', '_BEGIN_REBUILD', '_STAND_ON', '_UNLOCK'])
extract('streams/consuming.py', 'streams/lane_parts.py', ['LaneParts'], 'What all lanes of a process share.')
extract('streams/lane.py', 'streams/membership.py', ['NotAMember'], '', into=True)
# --- aiokafka's private names
P('streams/client_internals.py').write_text(rd('/work/tools-r/internals_src.py'))
PRIVATE = [(r'await self\._coordinator\._do_heartbeat\(\)', 'await heartbeat_of(self._coordinator)()', 'heartbeat_of'), (r'(?<![\w.])(consumer|self\._consumer)\._coordinator\b(?!\.)', r'coordinator_of(\1)', 'coordinator_of'), (r'= self\._coordinator\._do_heartbeat\b', '= heartbeat_of(self._coordinator)', 'heartbeat_of'), (r'self\._coordinator\._do_heartbeat = (self\.\w+)', r'replace_heartbeat(self._coordinator, \1)', 'replace_heartbeat'),
  (r'await consumer\._client\._wait_on_metadata\(topic\)', 'await wait_for_metadata(consumer, topic)', 'wait_for_metadata'),
  (r'(?<![\w.])client\._client\b(?!\._conns)', 'client_of_admin(client)', 'client_of_admin'),
  (r'    transactions = producer\._txn_manager\n    if transactions is not None and transactions\._transaction_waiter is not None:\n        notice\(\s*transactions\._transaction_waiter\s*\)', '    if (waiter := transaction_waiter(producer)) is not None:\n        notice(waiter)', 'transaction_waiter'),
  (r'self\._unpacked\._records_iterator = self\._unpacked\._unpack_records\(\)', 'restart_unpacking(self._unpacked)', 'restart_unpacking'),
  (r': Any = consumer\._client\b', ' = client_of(consumer)', 'client_of'), (r'(?<![\w.])((?:self\._)?consumer)\._client\b', r'client_of(\1)', 'client_of'), (r'\[each\._versions for each in client\._client\._conns\.values\(\) if each\._versions\]', 'told_versions(client)', 'told_versions'), (r'producer\._sender\.sender_task', 'sender_task(producer)', 'sender_task')]
for f in subprocess.run(['git', 'ls-files', 'streams/*.py'], capture_output=True, text=True).stdout.split():
    if f.endswith('client_internals.py') or not P(f).exists(): continue
    t = rd(f); need = []
    for pat, rep, name in PRIVATE:
        u = re.sub(pat, rep, t)
        if u != t: need.append(name); t = u
    if need:
        last = [n for n in ast.parse(t).body if isinstance(n, (ast.Import, ast.ImportFrom))][-1]
        ls = t.splitlines(keepends=True); ls.insert(last.end_lineno, f"from ticketgate.streams.client_internals import {', '.join(dict.fromkeys(need))}\n"); P(f).write_text(''.join(ls))
sub('pyproject.toml', ('"aiokafka[lz4,snappy,zstd]>=0.14",', '# Below the version that could move the private names in streams/client_internals.py.\n    "aiokafka[lz4,snappy,zstd]>=0.14,<0.15",'), ('"faust-streaming>=0.15.3",', '# Below the version that could move the private names in streams/app.py.\n    "faust-streaming>=0.15.3,<0.16",'))
# --- text that contradicts the code; a dependency that nobody imports, and one that somebody does
sub('README.md', ('The funnel judges it by eight gates', 'The funnel judges it by nine gates'))
sub('streams/decided.py', ("The `committed` mark alone would not do: it rides with the next batch's claims, and so lags\nbehind by one batch.", "The `committed` mark alone would not do: it is written after the commit, and a lane that died in\nbetween has not written it."))
sub('pyproject.toml', ('    "pydantic-settings>=2.8",\n', ''), ('    "click>=8.1,<8.4",\n', '    "click>=8.1,<8.4",\n    "cramjam>=2.8",\n'))
for f in ('deploy/constraints.txt', 'deploy/constraints-runtime.txt'):
    P(f).write_text(re.sub(r'(?m)^(pydantic-settings|python-dotenv)==[^\n]*\\\n(?:    --hash=[^\n]*\n)+', '', rd(f)))
subprocess.run(['git', 'add', '-A'])
print(len(rewrite('.', ALL)), 'importers rewritten')
subprocess.run(['.venv/bin/ruff', 'check', '.', '--fix', '-q'], stdout=subprocess.DEVNULL); subprocess.run(['.venv/bin/ruff', 'format', '-q', '.'])
out = subprocess.run(['.venv/bin/ruff', 'check', '.', '--output-format', 'concise'], capture_output=True, text=True).stdout
print('\n'.join(out.split('\n')[:15])); print('\n'.join(warn))
subprocess.run(['git', 'add', '-A'])
