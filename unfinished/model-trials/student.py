import torch, torch.nn as nn, torch.nn.functional as F, numpy as np
class Layer(nn.Module):
    def __init__(s):
        super().__init__(); s.qkv=nn.Linear(384,1152); s.out=nn.Linear(384,384); s.ln1=nn.LayerNorm(384,1e-12); s.inter=nn.Linear(384,1536); s.output=nn.Linear(1536,384); s.ln2=nn.LayerNorm(384,1e-12)
    def forward(s,h,mask):
        B,L,_=h.shape
        q,k,v=s.qkv(h).view(B,L,3,12,32).permute(2,0,3,1,4)
        c=F.scaled_dot_product_attention(q,k,v,attn_mask=mask).transpose(1,2).reshape(B,L,384)
        h=s.ln1(h+s.out(c))
        return s.ln2(h+s.output(F.gelu(s.inter(h))))
    def first(s,h,mask):
        B,L,_=h.shape; c=h[:,:1]
        W,b=s.qkv.weight,s.qkv.bias
        q=F.linear(c,W[:384],b[:384]).view(B,1,12,32).transpose(1,2)
        k,v=F.linear(h,W[384:],b[384:]).view(B,L,2,12,32).permute(2,0,3,1,4)
        a=F.scaled_dot_product_attention(q,k,v,attn_mask=mask).transpose(1,2).reshape(B,1,384)
        c=s.ln1(c+s.out(a))
        return s.ln2(c+s.output(F.gelu(s.inter(c))))
class Enc(nn.Module):
    def __init__(s,w,keep):
        super().__init__(); t=lambda x: torch.from_numpy(np.ascontiguousarray(x)).float()
        s.words=nn.Embedding.from_pretrained(t(w["embeddings.word_embeddings.weight"]),freeze=False)
        s.pos=nn.Parameter(t(w["embeddings.position_embeddings.weight"]+w["embeddings.token_type_embeddings.weight"][0]))
        s.ln=nn.LayerNorm(384,1e-12); s.ln.weight.data=t(w["embeddings.LayerNorm.weight"]); s.ln.bias.data=t(w["embeddings.LayerNorm.bias"])
        s.layers=nn.ModuleList()
        for i in keep:
            l=Layer(); n=f"encoder.layer.{i}"; a=n+".attention"
            l.qkv.weight.data=t(np.concatenate([w[f"{a}.self.{p}.weight"].T for p in("query","key","value")])); l.qkv.bias.data=t(np.concatenate([w[f"{a}.self.{p}.bias"] for p in("query","key","value")]))
            for m,k in((l.out,a+".output.dense"),(l.inter,n+".intermediate.dense"),(l.output,n+".output.dense")): m.weight.data=t(w[k+".weight"].T); m.bias.data=t(w[k+".bias"])
            for m,k in((l.ln1,a+".output.LayerNorm"),(l.ln2,n+".output.LayerNorm")): m.weight.data=t(w[k+".weight"]); m.bias.data=t(w[k+".bias"])
            s.layers.append(l)
    def forward(s,ids,mask,all=False):
        h=s.ln(s.words(ids)+s.pos[:ids.shape[1]])
        m=torch.zeros(mask.shape,dtype=torch.float32).masked_fill(mask==0,-1e9)[:,None,None,:]
        hs=[]
        for l in s.layers[:-1]: h=l(h,m.to(h.dtype)); hs.append(h)
        h=s.layers[-1].first(h,m)
        v=F.normalize(h[:,0].float(),dim=1)
        return (v,hs) if all else v
