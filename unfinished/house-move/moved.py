"""Rewrite `from OLD import name` where a name moved to another module. usage in code: rewrite(paths, {(old,name):new})"""
import ast, pathlib, re
def rewrite_text(t, moves):
    olds={o for o,_ in moves}
    if not any(o in t for o in olds): return t
    tree=ast.parse(t); lines=t.splitlines(keepends=True); edits=[]
    for n in ast.walk(tree):
        if isinstance(n,ast.ImportFrom) and n.level==0 and n.module in olds:
            stay=[];go={}
            for a in n.names:
                new=moves.get((n.module,a.name))
                s=a.name+(f' as {a.asname}' if a.asname else '')
                if new: go.setdefault(new,[]).append(s)
                else: stay.append(s)
            if not go: continue
            ind=' '*n.col_offset; out=''
            if stay: out+=f"{ind}from {n.module} import {', '.join(stay)}\n"
            for new,names in go.items(): out+=f"{ind}from {new} import {', '.join(names)}\n"
            edits.append((n.lineno,n.end_lineno,out))
    for a,b,o in sorted(edits,reverse=True): lines[a-1:b]=[o]
    return ''.join(lines)
def rewrite(root, moves):
    import subprocess
    ch=[]
    for f in subprocess.run(['git','ls-files','-co','--exclude-standard','*.py'],cwd=root,capture_output=True,text=True).stdout.split():
        p=pathlib.Path(root)/f
        if not p.exists(): continue
        t=p.read_text(); u=rewrite_text(t,moves)
        if u!=t: p.write_text(u); ch.append(f)
    return ch
