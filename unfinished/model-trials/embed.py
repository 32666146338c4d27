import numpy as np, onnxruntime as o, json, sys
from tokenizers import Tokenizer
TK="/work/tmp-m/bge/bge-small-en-v1.5-tokenizer.json"
class Embed:
    def __init__(s,graph,threads=2,window=256,log=False):
        so=o.SessionOptions(); so.intra_op_num_threads=threads; so.log_severity_level=3
        so.add_session_config_entry("session.intra_op.allow_spinning","0")
        s.s=o.InferenceSession(graph,so,providers=["CPUExecutionProvider"]); s.tk=Tokenizer.from_file(TK); s.tk.no_padding(); s.tk.enable_truncation(window); s.known={}; s.log=log
    def __call__(s,texts):
        new=sorted(set(texts)-s.known.keys())
        if new:
            ids=[e.ids for e in s.tk.encode_batch(new)]
            order=sorted(range(len(new)),key=lambda i:len(ids[i])); b=[]
            def run(b):
                W=len(ids[b[-1]]); a=np.zeros((len(b),W),np.int64); m=np.zeros_like(a)
                for r,i in enumerate(b): a[r,:len(ids[i])]=ids[i]; m[r,:len(ids[i])]=1
                v=s.s.run(["vector"],{"input_ids":a,"attention_mask":m})[0]
                for i,x in zip(b,v): s.known[new[i]]=x
            for n,i in enumerate(order):
                if b and len(ids[i])*(len(b)+1)>2048: run(b); b=[]
                b.append(i)
                if s.log and n%20000==0: print(n,len(new),flush=True)
            if b: run(b)
        return np.stack([s.known[t] for t in texts])
if __name__=="__main__":
    t=json.load(open("/work/tmp-m/texts.json")); e=Embed("/work/tmp-m/f12.onnx",log=True); np.save("/work/tmp-m/teacher.npy",e(t).astype(np.float16))
