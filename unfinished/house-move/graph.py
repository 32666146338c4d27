import ast,sys,pathlib
root=pathlib.Path(sys.argv[1])
only=sys.argv[2] if len(sys.argv)>2 else ''
def mod(p):
    r=p.relative_to(root).with_suffix('')
    parts=list(r.parts)
    if parts[-1]=='__init__': parts=parts[:-1]
    return '.'.join(parts)
mods={}
for top in ('streams','agents','store','codecs'):
    for p in sorted((root/top).rglob('*.py')):
        mods[mod(p)]=p
imps={}
for m,p in mods.items():
    t=ast.parse(p.read_text())
    s=set()
    for n in ast.walk(t):
        if isinstance(n,ast.ImportFrom) and n.module and n.module.startswith('ticketgate'):
            b=n.module.removeprefix('ticketgate').lstrip('.')
            for a in n.names:
                c=(b+'.'+a.name).lstrip('.')
                s.add(c if c in mods else b)
        elif isinstance(n,ast.ImportFrom) and n.level: s.add('REL '+(n.module or ''))
        elif isinstance(n,ast.Import):
            for a in n.names:
                if a.name.startswith('ticketgate'): s.add(a.name.removeprefix('ticketgate.'))
    imps[m]=s
if __name__=='__main__':
    for m,p in mods.items():
        if not m.startswith(only): continue
        t=ast.parse(p.read_text()); d=(ast.get_docstring(t) or '').split('\n')[0]
        n=len(p.read_text().splitlines())
        print(f'## {m} [{n}] {d}')
        tops=sorted(i for i in imps[m])
        print('   ->',' '.join(tops))
