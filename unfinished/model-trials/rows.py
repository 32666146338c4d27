import sys,random,pickle; sys.path.insert(0,"/work/tmp-m/wip"); sys.path.insert(0,"/work/wt/m/deploy/model")
from pathlib import Path
import triage, corpus as C
from contrast import contrast_rows; from generic import generic_rows; from graded import graded_rows; from choices import choice_rows, team_rows
def make(embed,seed=20261129,own=7000,contrast=30000,generic=10000,graded=2500,share=.5):
    r=random.Random(seed); c=C.Corpus(Path("/work/shared/data"),Path("/work/shared/model/eval_sets.json"))
    near={n:C._near(c.phrases[n],embed) for n in ("banking77","clinc")}
    rows={"public":c.rows(embed,r),"own":triage.rows(own,r)+triage.banking_rows(c.banking,r),"contrast":contrast_rows(contrast,r),"generic":generic_rows(c,r,count=generic),"graded":graded_rows(graded,r),"choice":choice_rows(c,near,r,share=share)+team_rows(list(triage.tickets(1500,r)),r)}
    return c,rows
