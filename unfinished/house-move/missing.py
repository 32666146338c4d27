import sys,subprocess,pathlib; sys.path.insert(0,'/work/tools-r'); import rooms
t=rooms.parse(rooms.PRODUCT)|rooms.parse(rooms.TESTS)
root=sys.argv[1]; rev=sys.argv[2]
for f in subprocess.run(['git','ls-tree','-r','--name-only',rev],cwd=root,capture_output=True,text=True).stdout.split():
    if f.endswith('.py') and not f.endswith('__init__.py') and f.split('/')[0] in('streams','agents','store','codecs','tests') and not f.startswith(('tests/bench','tests/chaos')):
        m=f[:-3].replace('/','.')
        if m not in t: print(m, '|', subprocess.run(['git','show',f'{rev}:{f}'],cwd=root,capture_output=True,text=True).stdout.split('\n')[0][:120])
