import sys; sys.path.insert(0,"/work/tmp-m"); 
from weights import load; from graph import build; import onnx
from speed0 import bench
w=load()
for layers in (12,6):
  for attn in ("mha","plain"):
    for gelu in ("Gelu","FastGelu",""):
      if layers==6 and (attn!="mha" or gelu!="Gelu"): continue
      m=build(w,layers,attn=attn,gelu=gelu); p=f"/work/tmp-m/s{layers}.onnx"; onnx.save(m,p); print(layers,attn,gelu,bench(p,dq=False),flush=True)
m=build(w,12,fp32=True); onnx.save(m,"/work/tmp-m/f12.onnx"); print("fp32",bench("/work/tmp-m/f12.onnx",dq=False))
