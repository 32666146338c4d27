import json,random,sys; sys.path.insert(0,"/work/tmp-m/proto"); sys.path.insert(0,"/work/wt/m/deploy/model")
from texts import *
from contrast import contrast_rows
from generic import generic_rows
r=random.Random(11); c=Corpus(Path("/work/shared/data"),Path("/work/shared/model/eval_sets.json"))
pub=[t for t,_ in c.banking+c.clinc]+c.out_of_scope+[t for t,_ in c.nlupp]
own=[t for t,_,_ in triage.tickets(3000,r)]
con=contrast_rows(9000,r); gen=generic_rows(c,r,count=3000)
q=sorted({x.question for x in con}|{x.question for x in gen})
wn=wordnet(); r.shuffle(wn)
base=r.sample(pub,6000)+r.sample(own,1500)+r.sample(sorted({x.state for x in con}),3000)+r.sample(q,900)+wn[:8000]
fr=[f.format(vp=v,np=k.replace("_"," ").rstrip("?")) for n,ph in c.phrases.items() for k,v in ph.items() for f in r.sample(sorted(set(FRAMES)),2)]
base+=fr+[k.replace("_"," ") for n,ph in c.phrases.items() for k in ph]+[v for n,ph in c.phrases.items() for v in ph.values()]
base+=[typo(typo(x,r),r) for x in r.sample(pub+own,800)]
base+=[" ".join(r.sample(pub+own,r.randint(4,9))) for _ in range(80)]
t=sorted({x for x in base if x.strip() and x.lower() not in c.held_texts}); r.shuffle(t)
print(len(t),sum(len(x.split()) for x in t)); json.dump(t,open("/work/tmp-m/texts.json","w"))
