"""compare_tests.py BEFORE AFTER: files of `pytest --collect-only -q`; by function name and parameters, wherever they stand."""
import sys,collections,re
def read(f):
    c=collections.Counter()
    for l in open(f):
        l=l.strip()
        if '::' in l and not l.startswith(('ERROR','FAILED')):
            name=l.split('::',1)[1]
            c[name]+=1
    return c
a,b=read(sys.argv[1]),read(sys.argv[2])
lost=a-b; new=b-a
# parameters that are paths or module names of the product move with it
t=dict()
for line in open('/work/tools-r/moves.txt'):
    o,n=line.rstrip('\n').split('\t'); t[o]=n
print(f'before {sum(a.values())}, after {sum(b.values())}')
print('not there under the same name and parameters:', sum(lost.values()))
for k,v in sorted(lost.items()): print('  -',k,v if v>1 else '')
print('new:', sum(new.values()))
by=collections.Counter(re.sub(r'\[.*','',k) for k in new.elements())
for k,v in sorted(by.items()): print('  +',k,v)
