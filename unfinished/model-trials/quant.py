import sys,json,random,numpy as np,onnx,onnxruntime as o; sys.path.insert(0,"/work/tmp-m/proto")
from weights import load; from graph import build; from embed import Embed
from tokenizers import Tokenizer
w=load(); probes=[]
m=build(w,12,fp32=True,probes=probes)
s=o.SessionOptions(); s.intra_op_num_threads=1; s.log_severity_level=3
S=o.InferenceSession(m.SerializeToString(),s,providers=["CPUExecutionProvider"])
tk=Tokenizer.from_file("/work/tmp-m/bge/bge-small-en-v1.5-tokenizer.json"); tk.no_padding(); tk.enable_truncation(128)
T=json.load(open("/work/tmp-m/texts.json")); r=random.Random(0); calib=r.sample(T,160); test=r.sample(T,120)
mn={n:[] for n,_ in probes}; mx={n:[] for n,_ in probes}
for t in calib:
    ids=np.array([tk.encode(t).ids]); out=S.run([x for _,x in probes],{"input_ids":ids,"attention_mask":np.ones_like(ids)})
    for (n,_),v in zip(probes,out): mn[n].append(float(v.min())); mx[n].append(float(v.max()))
E0=Embed("/work/tmp-m/f12.onnx",threads=1)(test); mu=E0.mean(0)
def cen(a): a=a-mu; return a/np.linalg.norm(a,axis=1,keepdims=True)
best=None
for q in (1.0,.95,.5):
    sc={n:(float(np.quantile(mn[n],1-q)),float(np.quantile(mx[n],q))) for n in mn}
    g=build(w,12,scales=sc); onnx.save(g,"/work/tmp-m/q12.onnx")
    v=Embed("/work/tmp-m/q12.onnx",threads=1)(test); c=(v*E0).sum(1); cc=(cen(v)*cen(E0)).sum(1); print(q,c.mean(),c.min(),cc.mean(),cc.min(),flush=True)
    if best is None or cc.mean()>best[0]: best=(cc.mean(),q,sc)
json.dump(best[2],open("/work/tmp-m/scales.json","w")); onnx.save(build(w,12,scales=best[2]),"/work/tmp-m/q12.onnx"); print("best",best[:2])
