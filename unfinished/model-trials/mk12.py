from weights import load; from graph import build; import onnx, numpy as np
onnx.save(build(load(),12,fp32=True),"/work/tmp-m/f12.onnx")
from embed import Embed
v=Embed("/work/tmp-m/f12.onnx",threads=1)(["How can I cancel?","I want to stop my plan","a red apple"]); print(v.shape,(v@v.T).round(3),np.linalg.norm(v,axis=1))
