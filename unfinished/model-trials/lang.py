import time,json,csv,sys,random,re
from py3langid.langid import LanguageIdentifier, MODEL_FILE
t=time.time(); L=LanguageIdentifier.from_pickled_model(MODEL_FILE,norm_probs=True); print("load",time.time()-t, len(L.nb_classes), sorted(L.nb_classes))
import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss/1024)
print([m for m in dir(L) if not m.startswith("__")])
t=time.time(); [L.classify("My card was charged twice. Please fix this today.") for _ in range(300)]; print("us",(time.time()-t)/300*1e6)
for s in ["Where is my parcel?","hello","ok","Danke","Wo ist mein Paket?","Je veux un remboursement","Hola, quiero cancelar mi pedido","refund","card not working","Mijn pakket is niet aangekomen"]: print(s,L.rank(s)[:3])
