import sys,time,torch,json,random,numpy as np; sys.path.insert(0,"/work/tmp-m/proto")
from weights import load; from student import Enc
from tokenizers import Tokenizer
import torch.nn.functional as F
KEEP=[0,2,3,6,8,9,10,11]; EPOCHS=float(sys.argv[1]) if len(sys.argv)>1 else 2; LR=2e-4
torch.manual_seed(7); torch.set_num_threads(2); w=load(); tk=Tokenizer.from_file("/work/tmp-m/bge/bge-small-en-v1.5-tokenizer.json"); tk.no_padding(); tk.enable_truncation(256)
texts=json.load(open("/work/tmp-m/texts.json")); T=torch.from_numpy(np.load("/work/tmp-m/teacher.npy").astype(np.float32))
T=F.normalize(T,dim=1); mu=T.mean(0)
ids=[e.ids for e in tk.encode_batch(texts)]
r=random.Random(3); idx=list(range(len(texts))); r.shuffle(idx); val=idx[:400]; tr=idx[400:]
def batches(idx,budget=700):
    idx=sorted(idx,key=lambda i:len(ids[i])+r.random()*3); out=[];b=[]
    for i in idx:
        if b and len(ids[i])*(len(b)+1)>budget: out.append(b); b=[]
        b.append(i)
    out.append(b); r.shuffle(out); return out
def pad(b):
    W=max(len(ids[i]) for i in b); a=torch.zeros(len(b),W,dtype=torch.long); m=torch.zeros_like(a)
    for k,i in enumerate(b): a[k,:len(ids[i])]=torch.tensor(ids[i]); m[k,:len(ids[i])]=1
    return a,m
enc=Enc(w,KEEP); enc.words.weight.requires_grad=False; enc.pos.requires_grad=False
for p in enc.ln.parameters(): p.requires_grad=False
for i in (0,1):
  for p in enc.layers[i].parameters(): p.requires_grad=False
params=[p for p in enc.parameters() if p.requires_grad]
opt=torch.optim.AdamW(params,LR,weight_decay=0.01,betas=(.9,.98))
total=int(EPOCHS*len(batches(tr))); lr=lambda s: min(1,(s+1)/60)*max(.02,1-s/total); sch=torch.optim.lr_scheduler.LambdaLR(opt,lr)
def cos(S,t): return (S*t).sum(1), (F.normalize(S-mu,dim=1)*F.normalize(t-mu,dim=1)).sum(1)
def check():
    enc.eval(); c=[]
    with torch.no_grad():
        for b in batches(val,2000):
            a,m=pad(b); c.append(torch.stack(cos(enc(a,m),T[b]),1))
    enc.train(); return torch.cat(c).mean(0).tolist()
print("start",check(),total,flush=True); step=0; t0=time.time(); run=0
while step<total:
    for b in batches(tr):
        a,m=pad(b); raw,cen=cos(enc(a,m),T[b]); loss=(1-cen).mean()+2*(1-raw).mean()
        opt.zero_grad(); loss.backward(); torch.nn.utils.clip_grad_norm_(params,1.0); opt.step(); sch.step(); step+=1; run=.98*run+.02*loss.item()
        if step%50==0: print(step,round(time.time()-t0),round(run,4),check() if step%200==0 else "",flush=True)
        if step%200==0: torch.save(enc.state_dict(),"/work/tmp-m/student.pt")
        if step>=total: break
torch.save(enc.state_dict(),"/work/tmp-m/student.pt"); print("done",check(),flush=True)
