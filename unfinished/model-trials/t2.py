import sys,time,torch; sys.path.insert(0,"/work/tmp-m/proto")
from weights import load; from student import Enc
torch.set_num_threads(2); w=load()
ids=torch.randint(1000,20000,(64,16)); mask=torch.ones_like(ids)
for keep in (list(range(12)),[0,1,2,4,6,8,10,11]):
  e=Enc(w,keep)
  for bf in (False,True):
    e.eval()
    with torch.no_grad(), torch.autocast("cpu",torch.bfloat16,enabled=bf):
        e(ids,mask); a=time.time(); [e(ids,mask) for _ in range(5)]; f=(time.time()-a)/5
    e.words.weight.requires_grad=False
    opt=torch.optim.AdamW([p for p in e.parameters() if p.requires_grad],1e-4)
    a=time.time()
    for _ in range(4):
        with torch.autocast("cpu",torch.bfloat16,enabled=bf): l=(1-(e(ids,mask)[:,:5]).sum(1)).mean()
        opt.zero_grad(); l.backward(); opt.step()
    b=(time.time()-a)/4
    print(len(keep),bf,"fwd tok/s",int(1024/f),"train tok/s",int(1024/b),flush=True)
