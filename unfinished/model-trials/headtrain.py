import torch, numpy as np, torch.nn as nn, torch.nn.functional as F
WIDTH=384; S=WIDTH**.5
class Head(nn.Module):
    def __init__(s,mu_u,mu_v,hidden=320,dropout=.3):
        super().__init__(); s.inner=nn.Linear(4*WIDTH,hidden); s.outer=nn.Linear(hidden,1); s.cosine=nn.Parameter(torch.tensor(4.)); s.drop_in,s.drop=nn.Dropout(.1),nn.Dropout(dropout)
        s.register_buffer("mu_u",mu_u); s.register_buffer("mu_v",mu_v)
    def forward(s,u,v):
        u=F.normalize(u-s.mu_u,dim=1); v=F.normalize(v-s.mu_v,dim=1); p=u*v
        h=F.gelu(s.inner(s.drop_in(torch.cat([u*S,v*S,(u-v).abs()*S,p*WIDTH],1))))
        return s.outer(s.drop(h)).squeeze(1)+s.cosine*p.sum(1)
def table(texts,embed):
    known={t:i for i,t in enumerate(dict.fromkeys(texts))}
    return torch.from_numpy(embed(list(known))),torch.tensor([known[t] for t in texts])
def train(rows,embed,epochs=4,seed=1,hidden=320,lr=1.5e-3,verbose=True):
    torch.manual_seed(seed)
    U,ui=table([r.state for r in rows],embed); V,vi=table([r.question for r in rows],embed)
    y=torch.tensor([r.label for r in rows]); w=torch.tensor([r.weight for r in rows])
    head=Head(U.mean(0),V.mean(0),hidden); opt=torch.optim.AdamW(head.parameters(),lr=1e-3,weight_decay=.02)
    n=epochs*(len(rows)//512+1); sch=torch.optim.lr_scheduler.OneCycleLR(opt,lr,total_steps=n)
    for e in range(epochs):
        head.train(); tot=0
        for c in torch.randperm(len(rows)).split(512):
            l=F.binary_cross_entropy_with_logits(head(U[ui[c]],V[vi[c]]),y[c],weight=w[c]); opt.zero_grad(); l.backward(); opt.step(); sch.step(); tot+=l.item()*len(c)
        if verbose: print("epoch",e,round(tot/len(rows),4),flush=True)
    return head.eval()
@torch.no_grad()
def logits(head,states,questions,embed): return head(torch.from_numpy(embed(states)),torch.from_numpy(embed(questions))).numpy()
