import sys,time,json,csv,random; sys.path.insert(0,"/work/tmp-m/proto")
import numpy as np, py3langid.langid as l; from foreign import F
t=time.time(); L=l.LanguageIdentifier.from_model_file(l.MODEL_FILE); print("load",round(time.time()-t,2),len(L.labels))
import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss/1024)
if len(sys.argv)>1:
    L.set_languages(sys.argv[1].split(","))
def margin(s):
    r=L.rank(s); en=dict(r)["en"]; o=[(b,a) for a,b in r if a!="en"][0]; return o[0]-en,o[1]
t=time.time(); [margin("My card was charged twice. Please fix this today.") for _ in range(300)]; print("us",(time.time()-t)/300*1e6)
D="/work/shared/data/"
sets={"banking":[x["text"] for x in csv.DictReader(open(D+"banking77_test.csv"))],"clinc":[t for t,_ in json.load(open(D+"clinc_data_full.json"))["test"]],"bitext":[list(x.values())[0] if 0 else x for x in []]}
b=list(csv.DictReader(open(D+"bitext_support_4k.csv"))); k=[k for k in b[0]]; print(k); sets["bitext"]=[x.get("instruction") or x.get("utterance") or x.get("text") for x in b]
n=[r["text"] for f in ("banking","hotels") for r in json.load(open(D+"nlupp/"+f+".json"))]; sets["nlupp"]=n
for n,ts in sets.items():
    ts=random.Random(1).sample(ts,min(1500,len(ts))); m=sorted(((*margin(t),t) for t in ts),reverse=True)
    v=np.array([x[0] for x in m]); print(n,{th:round(float((v>th).mean()),4) for th in (0,2,4,6,8,10,15)}); print(m[:6])
f=[(k,s,*margin(s)) for k,ss in F.items() for s in ss]
v=np.array([x[2] for x in f]); print("foreign",{th:round(float((v>th).mean()),3) for th in (0,2,4,6,8,10,15)}); print([x for x in sorted(f,key=lambda x:x[2])[:25]])
