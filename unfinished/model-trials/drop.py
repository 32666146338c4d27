import sys,time,torch,json,random,itertools; sys.path.insert(0,"/work/tmp-m/proto")
from weights import load; from student import Enc
from tokenizers import Tokenizer
import torch.nn.functional as F
torch.set_num_threads(2); w=load(); tk=Tokenizer.from_file("/work/tmp-m/bge/bge-small-en-v1.5-tokenizer.json"); tk.enable_padding(); tk.enable_truncation(64)
c=json.load(open("/work/shared/data/clinc_data_full.json"))["train"]; random.seed(1)
texts=[t for t,_ in random.sample(c,160)]
e=tk.encode_batch(texts); ids=torch.tensor([x.ids for x in e]); mask=torch.tensor([x.attention_mask for x in e])
enc=Enc(w,list(range(12))).eval()
m=torch.zeros(mask.shape).masked_fill(mask==0,-1e9)[:,None,None,:]
@torch.no_grad()
def run(keep):
    h=enc.ln(enc.words(ids)+enc.pos[:ids.shape[1]])
    for i in keep: h=enc.layers[i](h,m)
    return F.normalize(h[:,0],dim=1)
T=run(range(12)); Tc=F.normalize(T-T.mean(0),dim=1)
def q(keep):
    S=run(keep); return float((S*T).sum(1).mean()), float((F.normalize(S-S.mean(0),dim=1)*Tc).sum(1).mean())
keep=list(range(12))
while len(keep)>6:
    best=max(((q([k for k in keep if k!=d]),d) for d in keep),key=lambda x:x[0][1])
    keep.remove(best[1]); print(len(keep),keep,best,flush=True)
