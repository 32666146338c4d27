import sys; sys.argv=['x','/work/main','zzz']
sys.path.insert(0,'/work/tools-r')
import graph, rooms
T=rooms.parse(rooms.PRODUCT)|{k:v for k,v in rooms.PACKAGES.items()}
L=['cli','demo','process','operations','roles','lane','kafka','config','parts']
AL={'workbench':0,'funnel':1,'effects':2,'deciding':2,'scoring':3,'policy':3,'http_asking':4,'plural':4}
def room(m): 
    p=m.split('.'); return p[1] if len(p)>1 else ''
edges={}
for a,bs in graph.imps.items():
    na=T.get(a); 
    for b in bs:
        nb=T.get(b)
        if not na or not nb: continue
        if na.startswith('streams.') and nb.startswith('streams.'):
            ra,rb=room(na),room(nb)
            if ra in L and rb in L and ra!=rb and L.index(ra)>L.index(rb): print('UP',na,'->',nb)
        if na.startswith('agents.') and nb.startswith('agents.'):
            ra,rb=room(na),room(nb)
            if ra!=rb and ra in AL and rb in AL and AL[ra]>=AL[rb]: print('UP',na,'->',nb)
        # siblings
        pa,pb=na.split('.'),nb.split('.')
        k=0
        while k<min(len(pa),len(pb)) and pa[k]==pb[k]: k+=1
        if k<len(pa) and k<len(pb): edges.setdefault('.'.join(pa[:k]),set()).add((pa[k],pb[k],na+'->'+nb))
for anc,es in edges.items():
    if not anc: continue
    g={}
    for x,y,w in es: g.setdefault(x,{}).setdefault(y,[]).append(w)
    def reach(s):
        seen=set();st=[s]
        while st:
            n=st.pop()
            for m in g.get(n,{}):
                if m not in seen: seen.add(m); st.append(m)
        return seen
    R={n:reach(n) for n in g}
    for x in g:
        for y in g[x]:
            if x in R.get(y,()) : print('CIRCLE in',anc,':',x,'->',y, g[x][y][:3])
