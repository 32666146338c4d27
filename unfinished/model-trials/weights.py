import onnx, numpy as np
from onnx import numpy_helper
def load(path="/work/tmp-m/bge/bge-small-en-v1.5.onnx"):
    m=onnx.load(path); init={t.name:numpy_helper.to_array(t) for t in m.graph.initializer}
    by={}
    for n in m.graph.node:
        for i in n.input: by.setdefault(i,[]).append(n)
    w={k:v for k,v in init.items() if not k.startswith("onnx::")}
    for n in m.graph.node:
        if n.op_type=="MatMul" and n.input[1] in init:
            add=[a for a in by[n.output[0]] if a.op_type=="Add"][0]
            bias=[i for i in add.input if i in init][0]
            w[bias.replace(".bias",".weight")]=init[n.input[1]]  # [in,out]
    return w
if __name__=="__main__":
    w=load(); print(len(w)); print([ (k,v.shape) for k,v in w.items() if "layer.3." in k])
