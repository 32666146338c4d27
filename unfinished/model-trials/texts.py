import sys,random,re,json; sys.path.insert(0,"/work/wt/m/deploy/model")
from pathlib import Path
import triage
from corpus import Corpus, FRAMES
def wordnet():
    out=[]
    for f in ("noun","verb","adj","adv"):
        for line in open(f"/work/tmp-m/wn/package/dict/data.{f}",encoding="latin-1"):
            if line.startswith("  "): continue
            gloss=line.split("| ",1)[1].strip()
            parts=re.findall(r'"([^"]+)"',gloss); d=gloss.split('; "')[0]
            word=line.split()[4].replace("_"," ")
            out.append(d)
            out.append(f"{word}: {d}") if len(out)%7==0 else None
            out+=[p for p in parts if len(p.split())>2]
    return out
def typo(t,r):
    if len(t)<8: return t
    i=r.randrange(len(t)-2); k=r.random()
    return t[:i]+t[i+1]+t[i]+t[i+2:] if k<.4 else t[:i]+t[i+1:] if k<.8 else t[:i]+t[i]+t[i:]
def collect(seed=1):
    r=random.Random(seed)
    c=Corpus(Path("/work/shared/data"),Path("/work/shared/model/eval_sets.json"))
    pub=[t for t,_ in c.banking+c.clinc]+c.out_of_scope+[t for t,_ in c.nlupp]
    q=[]
    for n,ph in c.phrases.items():
        for k,v in ph.items():
            topic=k.replace("_"," ").rstrip("?"); q+=[topic]+[f.format(vp=v,np=topic) for f in r.sample(sorted(set(FRAMES)),4)]
    q+=[d[0].upper()+d[1:] for d in c.nlupp_questions.values()]
    for x in triage.parts()["questions"].values(): q+=x["texts"]
    own=[t for t,_,_ in triage.tickets(9000,r)]
    wn=wordnet(); r.shuffle(wn); wn=wn[:60000]
    long=[" ".join(r.sample(pub+own,r.randint(4,14))) for _ in range(700)]
    t=pub+q+own+wn+long
    t+=[typo(typo(x,r),r) for x in r.sample(pub+own,4000)]
    t=sorted({x for x in t if x.strip() and x.lower() not in c.held_texts})
    return t
if __name__=="__main__":
    t=collect(); print(len(t),sum(len(x.split()) for x in t))
    json.dump(t,open("/work/tmp-m/texts.json","w"))
