import re, pathlib
from inits import INITS
HERE = pathlib.Path(__file__).parent
contracts = (HERE / 'contracts.toml').read_text()
# ----------------------------------------------------------------------------------------------- references
# whole sentences first; then the rest by section
SENT = [
 ("Source: DESIGN section 4, as measured in tests/streams/lane/test_pace.py.", "tests/streams/lane/test_pace.py measures it."),
 ("DESIGN section 4, and each switched", "the protocol's own, and each switched"),
 ("Source: the seed's denominators, DESIGN section 7; README.md beside this says what each rate counts.", "The page of the funnel (../../funnel/README.md) says what each rate counts."),
 ("Source: DESIGN section 4; tests/delivery/model shows what goes wrong without it.", "tests/delivery/model shows what goes wrong without it."),
 ("Source: DESIGN section 4; tests/streams/lane/model shows what goes wrong without it.", "tests/streams/lane/model shows what goes wrong without it."),
 ("Source: DESIGN section 4, step 4; tests/streams/lane/model, `syncs_late_writes`.", "tests/streams/lane/model shows what goes wrong without it (`syncs_late_writes`)."),
 ("Source: DESIGN section 6; the language is described in README.md beside this file.", "The language is described in README.md beside this file."),
 ("Source: DESIGN section 5, protocol notes section 2.", ""),
 ("Source: DESIGN section 4,\nwith what tests/streams/lane/model found in it: the token, the marks of all partitions, the mark of a commit at once.", "The token, the marks of all\npartitions and the mark of a commit at once are there for what tests/streams/lane/model found. See\nARCHITECTURE.md#delivery."),
 ("Tickets and proposed calls (DESIGN sections 4 and 7) use the same shape.", "Tickets and proposed calls use the same shape."),
 ("same fingerprint (DESIGN section 3) read the same", "same fingerprint read the same"),
 ("whichever scorer it came from (DESIGN section 5)", "whichever scorer it came from"),
 ("(shared/model/README.md)", "(deploy/model/README.md)"),
 ("(shared/model/README.md), and the", "(deploy/model/README.md), and the"),
 (" (DESIGN section 7, `proposal/1`)", " (`proposal/1`)"),
 (" (DESIGN section 3, `ticket/1`)", " (`ticket/1`)"),
 ("# ruff: noqa: A005 - installed as ticketgate.codecs, which shadows nothing (DESIGN section 2)", "# ruff: noqa: A005 - installed as ticketgate.codecs, which shadows nothing"),
 ("Field order is that of DESIGN's example and stays.", "Field order is part of the form and stays."),
 ("(DESIGN section 3). To add a version", "To add a version"),
 ("stage: `parse` for bytes, `schema` for shape (DESIGN section 3).", "stage: `parse` for bytes, `schema` for shape."),
 ("The rules are DESIGN section 3's; a byte order mark is refused", "A byte order mark is refused"),
 ("What becomes of a case. The words are DESIGN section 1's; `accept` alone lets effects through.", "What becomes of a case; `accept` alone lets effects through."),
 ("a ticket's in their order (DESIGN section 4), then", "a ticket's in their order, then"),
 ("Three kinds (DESIGN section 5): noul", "Three kinds: noul"),
 ("Servers round probabilities to four decimals (protocol notes, Ardana), so each", "Servers such as Ardana round probabilities to four decimals, so each"),
 ("A record keeps a scorer's answers as they came (DESIGN section 3), even broken ones", "A record keeps a scorer's answers as they came, even broken ones"),
 ("The first seven are DESIGN section 4, and each switched off is a mutant that", "The first seven are the protocol's own, and each switched off is a mutant that"),
 ("I1 to I6 of DESIGN section 4, and what follows from them", "I1 to I6 of ARCHITECTURE.md#invariants, and what follows from them"),
 ("from DESIGN section 3 alone, with the standard library's json", "by itself, with the standard library's json"),
 ("# What issue 6 allows checking to cost, in parts of scoring.", "# What checking may cost, in parts of scoring."),
 ("# Tansu has no idempotent producer (DESIGN section 10).", "# Tansu has no idempotent producer."),
 (" (DESIGN section 7). Execution comes after all of them.", ". Execution comes after all of them."),
 ("the figures of shared/model/evaluate.py", "the figures of the team's evaluate.py"),
]
POINT = {'4': 'See ARCHITECTURE.md#delivery.', '7': 'See ARCHITECTURE.md#a-proposal.'}
SRC = re.compile(r'(?P<ws>[ \n]+)Source:\s+(?:DESIGN|issue)\b(?P<what>[^.`;]*(?:;\s+issue\s+\d+)?)\.(?=\s|"|$)')
PAREN = re.compile(r'\s\((?:DESIGN|issue)\s+(?:sections?\s+)?[^()`]*\)')
def references(path, text, warnings):
    for a, b in SENT: text = text.replace(a, b)
    def source(m):
        sections = re.findall(r'\d+', m['what'].split('issue')[0])
        keep = next((POINT[s] for s in ('4', '7') if s in sections[:2] and path.startswith('streams/')), '')
        if not keep: return ''
        return m['ws'] + keep
    text = SRC.sub(source, text)
    text = PAREN.sub('', text)
    out = []
    for line in text.split('\n'):
        if len(line) > 118 and 'See ARCHITECTURE.md' in line and not line.lstrip().startswith('"""'):
            i = line.index('See ARCHITECTURE'); ind = line[:len(line) - len(line.lstrip())]
            out += [line[:i].rstrip(), ind + line[i:]]
        else: out.append(line)
    text = '\n'.join(out)
    if not path.startswith(('tests/bench', 'deploy/model', 'tests/support/shared')):
        for m in re.finditer(r'[^\n]*(\bDESIGN\b|\bissue \d|protocol notes|design notes)[^\n]*', text):
            warnings.append(f'REFERENCE {path}: {m.group(0).strip()[:140]}')
    return text
# ----------------------------------------------------------------------------------------------- edits, by new path
def cmd(old, new): return (f'("{old}", "', f'("{new}", "')
EDITS = {
 'streams/cli/__init__.py': [cmd('demo','running.demo'),cmd('worker','running.worker'),cmd('topics','running.topics'),cmd('settings','running.settings'),cmd('produce','records.produce'),cmd('consume','records.consume'),cmd('serve','running.serve'),cmd('run','deciding.run'),cmd('check','deciding.check'),cmd('policy','policy.group'),cmd('funnel','funnel.cases'),cmd('release','funnel.release'),cmd('case','funnel.case'),cmd('audit','operations.audit'),cmd('claims','operations.claims'),cmd('reconcile','operations.reconcile'),cmd('ledger','operations.ledger'),cmd('replay','operations.replay'),cmd('dead_letter','records.dead_letter')],
 'streams/cli/policy/group.py': [('("policy_lint"','("policy.lint"'),('("policy_test"','("policy.test"'),('("policy_show"','("policy.show"'),('("policy_diff"','("policy.diff"'),('("policy_import"','("policy.import_"')],
 'streams/cli/running/demo.py': [('parents[1] / "samples"','parents[2] / "samples"')],
 'agents/funnel/file/release_grid.py': [('resources.files("ticketgate.agents.funnel")','resources.files("ticketgate.agents.funnel.file")')],
 'README.md': [('faust -A ticketgate.streams.process.app worker','faust -A ticketgate.streams.app worker')],
 'streams/process/app.py': [('`faust -A ticketgate.streams.process.app worker` finds `app`, made','`faust -A ticketgate.streams.app worker` finds `app`, made')],
 'pyproject.toml': [
   ('"ticketgate.agents.funnel" = ["examples/*", "release_grid.toml"]','"ticketgate.agents.funnel" = ["examples/*"]\n"ticketgate.agents.funnel.file" = ["release_grid.toml"]'),
   ('"ticketgate.agents.policy" = ["policy.schema.json"]','"ticketgate.agents.policy" = ["policy.schema.json"]'),
 ],
 'tests/agents/deciding/test_optimised.py': [('ROOT = HERE.parent.parent','ROOT = HERE.parents[2]'),('HERE / "test_rules.py"','HERE.parent / "policy" / "test_rules.py"')],
 'tests/streams/kafka/test_internals.py': [('{"client_internals", "app"}','{"internals", "app"}')],
 'tests/test_house.py': [
   ('"CHANGELOG.md", "Makefile"}','"CHANGELOG.md", "Makefile"}\n    allowed |= {"ARCHITECTURE.md", "CONTRIBUTING.md", ".github", ".pre-commit-config.yaml"}'),
 ],
 'codecs/records/headers.py': [('streams/lane/taking/records.py','records.py')],
 'tests/agents/effects/model/world.py': [('As store/ledger/ledger_rebuild.py does, with','As ledger_rebuild.py does, with')],
 'tests/agents/effects/test_page.py': [('            ROOT / "agents" / "effects" / name,\n', '            ROOT / "agents" / "effects" / name,\n            ROOT / "agents" / "effects" / "adapters" / name,\n'), ('ROOT / "tests" / "effects" / "model" / name', 'ROOT / "tests" / "agents" / "effects" / "model" / name')],
 'store/keys.py': [('random id of this store (streams/lane/opening/claims_store.py)','random id of this store (claims_store.py)')],
 'tests/agents/effects/model/processes.py': [('`streams/roles/effects/effect_taker.py` and `streams/lane/opening/opening.py`','`effect_taker.py` and `opening.py`')],
 'streams/lane/lane.py': [],
}
DELETE = ['tests/agents/funnel/conftest.py']
def NEW_FILES():
    out = {}
    for f in sorted((HERE / 'new').rglob('*')):
        if f.is_file() and '__pycache__' not in f.parts: out[str(f.relative_to(HERE / 'new'))] = f.read_text()
    return out
