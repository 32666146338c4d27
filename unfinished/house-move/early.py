"""Apply the early moves of names again to a tree: for code that others landed meanwhile."""
import sys; sys.path.insert(0,'/work/tools-r')
from moved import rewrite
S='ticketgate.streams.';C='ticketgate.codecs.';A='ticketgate.agents.policy.';E=S+'embedded.'
mv={(S+'recovery',n):S+'faults' for n in ('Action','Handling','LaneFault')}
mv|={(S+'records',n):S+'roles' for n in ('OutputTopics','output_topics')}; mv[(S+'records','size')]=S+'put_aside'
mv|={(S+'cli','CommandError'):S+'usage',(S+'cli.topics','explain'):S+'kafka_errors',(S+'cli.topics','require_topic'):S+'kafka_errors',(S+'cli.files','MAX_FILE_BYTES'):C+'limits'}
mv|={(S+'cli.span',n):S+'span' for n in ('Beginning','End','Moment','Offsets','Count','From','Until')}
mv|={(A+'document',n):A+'written' for n in ('Written','read_document','MAX_POLICY_BYTES')}
mv|={(C+'answers',n):C+'answer_checks' for n in ('check_answers','score_tolerance','sum_tolerance')}
mv|={(S+'settings',n):S+'setting_kinds' for n in ('SettingsError','Duration','Keys','Role','Roles','show_duration')}
mv|={(E+'process',n):E+'failures' for n in ('PartMissing','PartFailed')}
mv|={(E+'process',n):E+'ports' for n in ('HOST','PORTS','free_port')}
print(rewrite(sys.argv[1],mv))
import re,pathlib,subprocess
ren={'streams.cli.envelope':'streams.envelope','streams.cli.reader':'streams.reading','streams.cli.sender':'streams.sending','streams.cli.letters':'streams.letters','streams.cli.resend':'streams.resend','streams.cli.giving_up':'streams.giving_up','streams.cli.redis':'streams.command_redis'}
for f in subprocess.run(['git','ls-files','-co','--exclude-standard','*.py'],cwd=sys.argv[1],capture_output=True,text=True).stdout.split():
    p=pathlib.Path(sys.argv[1])/f
    if not p.exists(): continue
    t=p.read_text();u=t
    for a,b in ren.items(): u=re.sub(re.escape(a)+r'\b',b,u)
    if u!=t: p.write_text(u); print(f)
