import time,sys
from mailparser_reply import EmailReplyParser as P
p=P(languages=["en"])
for name,unit in (("quoted","> quoted line of text\n"),("on wrote","On Mon wrote "),("words","hello there my friend "),("lines","From: a\n"),("dashes","-"),("blank","\n"),("best","Best regards,\n"),("disc","This e-mail is confidential mail ")):
    for n in (1000,2000,4000,8000):
        s=(unit*(n//len(unit)+1))[:n]; t=time.process_time(); p.read(s); d=time.process_time()-t
        print(name,n,round(d,3),flush=True)
        if d>3: break
