"""static int8 graph"""
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper
HIDDEN,HEADS,EPS=384,12,1e-12
MS="com.microsoft"
class G:
    def __init__(s): s.nodes=[]; s.inits={}
    def node(s,op,*i,output=None,domain="",**a):
        o=output or f"{op.lower()}_{len(s.nodes)}"
        s.nodes.append(helper.make_node(op,list(i),[o],name=o,domain=domain,**a)); return o
    def const(s,n,v):
        if n not in s.inits: s.inits[n]=numpy_helper.from_array(np.array(v,order='C'),n)
        return n
    def ints(s,*v): return s.const("int_"+"_".join(map(str,v)),np.array(v,np.int64))
def quant_w(w,levels=63):
    s=np.maximum(np.abs(w).max(0),1e-8).astype(np.float32)/levels
    return np.clip(np.round(w/s),-levels,levels).astype(np.int8),s
def build(w,layers,scales=None,pool="cls",positions=512,gelu="Gelu",attn="mha",levels=63,fp32=False,probes=None):
    g=G()
    words=w["embeddings.word_embeddings.weight"]
    s=np.maximum(np.abs(words).max(1,keepdims=True),1e-8).astype(np.float32)/127
    t=g.const("words.int8",np.clip(np.round(words/s),-127,127).astype(np.int8)); sc=g.const("words.scale",s)
    if fp32: e=g.node("Gather",g.const("words",words),"input_ids")
    else: e=g.node("Mul",g.node("Cast",g.node("Gather",t,"input_ids"),to=TensorProto.FLOAT),g.node("Gather",sc,"input_ids"))
    pos=g.const("positions",w["embeddings.position_embeddings.weight"][:positions]+w["embeddings.token_type_embeddings.weight"][0])
    L=g.node("Shape","input_ids",start=1,end=2)
    placed=g.node("Slice",pos,g.ints(0),L,g.ints(0))
    def ln(x,n): return g.node("LayerNormalization",x,g.const(n+".weight",w[n+".weight"]),g.const(n+".bias",w[n+".bias"]),axis=-1,epsilon=EPS)
    h=ln(g.node("Add",e,placed),"embeddings.LayerNorm")
    mask=g.node("Cast","attention_mask",output="mask",to=TensorProto.FLOAT)
    bias=g.node("Mul",g.node("Sub",g.const("one",np.float32(1)),mask),g.const("masked",np.float32(-1e9)))
    bias=g.node("Unsqueeze",bias,g.ints(1,2))
    mask32=g.node("Cast","attention_mask",to=TensorProto.INT32)
    def q(x,name):
        """static per-tensor activation, uint8"""
        if probes is not None: probes.append((name,x))
        lo,hi=(scales or {}).get(name,(-4.,4.))
        lo=min(lo,0.);hi=max(hi,0.)
        sc=np.float32((hi-lo)/255); z=np.uint8(np.clip(round(-lo/sc),0,255))
        return g.node("QuantizeLinear",x,g.const(name+".s",sc),g.const(name+".z",z)), name
    def lin(xq,name,W,b):
        if fp32: return g.node("Add",g.node("MatMul",xq[0],g.const(name+".w",W)),g.const(name+".b",b))
        x,an=xq
        wi,ws=quant_w(W,levels)
        return g.node("MatMulIntegerToFloat",x,g.const(name+".int8",wi),an+".s",g.const(name+".scale",ws),an+".z",g.const(name+".zero",np.zeros(len(ws),np.int8)),g.const(name+".b",b),domain=MS)
    Q=(lambda x,n:(x,n)) if fp32 and probes is None else (lambda x,n:(probes.append((n,x)),(x,n))[1]) if fp32 else q
    for i in range(layers):
        n=f"encoder.layer.{i}"; a=n+".attention"
        W=np.concatenate([w[f"{a}.self.{p}.weight"] for p in("query","key","value")],1)
        b=np.concatenate([w[f"{a}.self.{p}.bias"] for p in("query","key","value")])
        if attn=="mha":
            qkv=lin(Q(h,n+".in"),n+".qkv",W,b)
            g.nodes.append(helper.make_node("Split",[qkv],[f"{n}.{p}" for p in "qkv"],axis=-1,num_outputs=3))
            ctx=g.node("MultiHeadAttention",*[f"{n}.{p}" for p in "qkv"],"",mask32,domain=MS,num_heads=HEADS)
        elif attn=="packed":
            pass
        else:
            sh=np.float32(32**-.5)
            W=W.copy();b=b.copy();W[:,:384]*=sh;b[:384]*=sh
            qkv=lin(Q(h,n+".in"),n+".qkv",W,b)
            g.nodes.append(helper.make_node("Split",[qkv],[f"{n}.{p}" for p in "qkv"],axis=-1,num_outputs=3))
            hd=g.ints(0,0,HEADS,32)
            qq,k,v=(g.node("Reshape",f"{n}.{p}",hd) for p in "qkv")
            qq=g.node("Transpose",qq,perm=[0,2,1,3]);k=g.node("Transpose",k,perm=[0,2,3,1]);v=g.node("Transpose",v,perm=[0,2,1,3])
            p=g.node("Softmax",g.node("Add",g.node("MatMul",qq,k),bias),axis=-1)
            ctx=g.node("Reshape",g.node("Transpose",g.node("MatMul",p,v),perm=[0,2,1,3]),g.ints(0,0,HIDDEN))
        o=lin(Q(ctx,n+".ctx"),n+".out",w[a+".output.dense.weight"],w[a+".output.dense.bias"])
        h=ln(g.node("Add",o,h),a+".output.LayerNorm")
        m=lin(Q(h,n+".mid"),n+".inter",w[n+".intermediate.dense.weight"],w[n+".intermediate.dense.bias"])
        if gelu=="Gelu": m=g.node("Gelu",m)
        elif gelu=="FastGelu": m=g.node("FastGelu",m,domain=MS)
        o=lin(Q(m,n+".act"),n+".output",w[n+".output.dense.weight"],w[n+".output.dense.bias"])
        h=ln(g.node("Add",o,h),n+".output.LayerNorm")
    if pool=="cls": v=g.node("Gather",h,g.const("at",np.array(0,np.int64)),axis=1)
    else:
        mk=g.node("Unsqueeze","mask",g.ints(2)); v=g.node("Div",g.node("ReduceSum",g.node("Mul",h,mk),g.ints(1),keepdims=0),g.node("ReduceSum",mk,g.ints(1),keepdims=0))
    ln2=g.node("ReduceL2",v,g.ints(1),keepdims=1); g.node("Div",v,ln2,output="vector")
    m=helper.make_model(helper.make_graph(g.nodes,"e",[helper.make_tensor_value_info(x,TensorProto.INT64,["batch","tokens"]) for x in("input_ids","attention_mask")],
        [helper.make_tensor_value_info("vector",TensorProto.FLOAT,["batch",HIDDEN])]+[helper.make_tensor_value_info(x,TensorProto.FLOAT,None) for _,x in (probes or [])],list(g.inits.values())),
        opset_imports=[helper.make_opsetid("",20),helper.make_opsetid(MS,1)],ir_version=10)
    return m
