INITS = {
'streams': """Kafka and the process: everything that carries records, and everything that people run.

Rooms, each importing only those after it: `cli`, `demo`, `process`, `operations`, `roles`, `lane`, `kafka`, `config`;
`parts` stands beside. `samples` are files. Deciding is in ticketgate.agents, what Redis keeps in ticketgate.store.
`app` is the door that `faust -A ticketgate.streams.app worker` looks for; the Faust app is in `process`.""",
'streams.config': """What a process is told, and what it tells: settings, metrics and readiness.

Here: every setting with its one default, what each role reads and writes, the words of /readyz and /metrics.
Not here: anything that opens a connection (`kafka`, ticketgate.store), or that checks what a broker says (`lane`).""",
'streams.kafka': """Reaching Kafka: connections, what a broker says, topics, reading and sending for people and commands.

Here: aiokafka's arguments, why a broker refuses, what it allows, records as JSON lines, one attempt a request, and in
`internals` the private names of aiokafka.
Not here: the delivery protocol, which alone writes in transactions (`lane`).""",
'streams.kafka.reading': """Reading topics from outside a group: to their end, a part of one, and what aiokafka cannot unpack.

Here: whole topics as of a moment, `--from` and `--until`, batches salvaged from their bytes.
Not here: how a lane reads its partition (`lane.taking.partition`), the records as JSON lines (`envelope`).""",
'streams.lane.opening': """Whether a lane may open, and where it begins: step 2 of the protocol and all that it asks.

Here: conditions of broker, topics and Redis, whose claims store it is, whether a topic still is the same, what died
lanes left. Not here: the fence itself (`lane.transaction`), what is taken once a lane is open (`taking`).""",
'streams.lane.taking': """One batch of a lane from records to a commit, and how large it is: steps 3 to 6 of the protocol.

Here: reading in order, decoding, claiming, pieces and their pace, records at fault set aside, records to send.
Not here: what is decided (`roles`), the transaction (`lane.transaction`), the steps' order after a fault (`lane.lane`).""",
'streams.lane': """The delivery protocol: one lane for each assigned input partition, its steps in `lane`.

Here: rebalances to lanes, membership, the commit, one way to recover from everything; `opening` and `taking` beside.
Not here: what is decided of a batch (`roles`), what Redis keeps (ticketgate.store), the process around (`process`).
ARCHITECTURE.md#delivery has the protocol and its invariants.""",
'streams.roles': """What differs by role: what a lane does with tickets, with proposals, with dispatched effects.

Here: `decide`, `propose` and `effects`, and what two of them share: takers, evidence, the records of cases.
Not here: how a batch is claimed and committed (`lane`), nor the judging itself, which is pure (ticketgate.agents).""",
'streams.roles.decide': """The role `decide`: tickets to decisions, whatever the scorer does.

Here: retries and time limits of deciding, and the thread a model runs in.
Not here: the gates and the policy (ticketgate.agents.deciding, ticketgate.agents.policy).""",
'streams.roles.propose': """The role `propose`: proposed calls to case decisions, with evidence and the attempts before.

Here: what a lane does with a batch of proposals.
Not here: the gates (ticketgate.agents.funnel), the attempts' store (ticketgate.store.attempts).""",
'streams.roles.effects': """The role `effects`: what was accepted is carried out, once, and told of in receipts.

Here: dispatched records to orders, the lane's steps for them, the reconciler beside the lanes.
Not here: the executor and the providers (ticketgate.agents.effects), the ledger (ticketgate.store.ledger).""",
'streams.operations': """What operators do to a deployment from outside: account, rebuild, replay, settle by hand.

Here: audits, claims and ledger rebuilt from the outputs, offsets set back, open effects; nothing prints.
Not here: flags and tables (`cli`), what a worker does by itself (`lane`, `roles`).""",
'streams.operations.dead_letters': """Dead letters: found, made ready to be sent again, and batches given up that nobody can read.

Here: which may go to their input again, and why others are held back.
Not here: what a dead letter says (`lane.taking.dead_letters`), how a lane passes over a batch (`lane.taking.passing`).""",
'streams.process': """One worker process: the Faust app, its parts in their order, the checks before it, the policy's reload.

Here: `app`, the only room that knows Faust, and `runner`, which opens and closes everything else.
Not here: what a lane or a role does; those are given their parts from here.""",
'streams.process.web': """The web port: health, readiness, metrics, and the System One endpoint.

Here: who may ask, requests scored together, errors as JSON, the OpenAPI description.
Not here: how a request is answered by a scorer (ticketgate.agents.scoring.systemone).""",
'streams.parts': """Apache Kafka, Tansu, Valkey and an example bank as child processes on 127.0.0.1, without Docker.

Here: for the demo, the tests and `make kafka`: started, watched until they answer, ended with their starter.
Not here: anything that a worker needs; no other room but `demo` imports this one.""",
'streams.demo': """The demos: a broker, a Redis and a worker on this machine, samples through them, and where each went.

Here: what `ticketgate demo` does. Not here: its flags and tables (`cli.running`), the parts themselves (`parts`).""",
'streams.cli': """The command `ticketgate`: each subcommand in a file of its own, loaded only when it is asked for.

Here: parsing, calling, printing. Not here: what a command does, which is in `operations`, `process` and `demo`, and can
be called without a terminal. Sub-folders are by subject; what all share lies beside them.

Exit codes: 0 done, accepted or as expected; 2 bad input or usage; 3 review or findings; 4 a dependency is
unreachable.""",
'streams.cli.running': """Commands that run something or show how it would run: demo, worker, serve, settings, topics.

Not here: the worker itself (`process`), the demo itself (`demo`).""",
'streams.cli.records': """Commands on records: produce, consume, and dead letters.

Not here: reading and sending (`kafka`), what becomes of dead letters (`operations.dead_letters`).""",
'streams.cli.deciding': """Commands that decide on this machine, without a broker: run and check.

Not here: the judging (ticketgate.agents).""",
'streams.cli.policy': """`ticketgate policy`: lint, test, show, diff and import. None loads a broker's client.

Not here: what they find (ticketgate.agents.workbench.policy).""",
'streams.cli.funnel': """Commands on the funnel's files and cases: funnel, release, case.

Not here: the gates (ticketgate.agents.funnel), the cases' run (ticketgate.agents.workbench.funnel).""",
'streams.cli.operations': """Commands that look after a deployment: audit, claims, ledger, reconcile, replay.

Not here: what they do (`operations`).""",
'agents': """The deciding: tickets and a scorer in, decisions out. No Kafka, no clock; Redis and HTTP behind ports alone.

Rooms: `deciding` runs the gates of a ticket, `policy` is the language of rules, `scoring` the models, `funnel` the
gates of a proposed call, `effects` carries out what was accepted. `workbench` is for people and CI: no worker imports
it.
Importing this package loads none of them.""",
'agents.deciding': """From a batch of tickets to one decision each: the gates of a ticket, in their order.

Here: `gate`, the shape of every gate and its runner; `ticket_gates`, the order; `selection`, answers to labels.
Not here: what rules mean (`policy`), who answers (`scoring`), a proposed call's gates (`funnel`).""",
'agents.policy': """Policies: the document, what it means, and what its rules say of an assignment.

`load_policy` reads a file, `parse_policy` a text; `violations` judges. The language is described in README.md
beside this file. Nothing here loads an inference engine.
Not here: lint, comparison and trial of policies (`workbench.policy`).""",
'agents.scoring': """Scorers: what answers a policy's questions about tickets.

Importing this package loads no inference engine: onnxruntime, tokenizers and numpy come in only when an
ONNX model is opened, so that `ticketgate check` and `policy lint` start quickly.
Not here: whether an answer may be believed, which the gate `answers` judges (`deciding`).""",
'agents.scoring.contracts': """Contracts: how a kind of model reads a ticket and questions, and what its outputs mean.

A manifest names its contract. A package adds one by an entry point in the group `ticketgate.contracts`, whose name is
the contract's and which is an `OpenContract`; code that opens models itself may call `register_contract`.
Not here: the model's folder and its graphs (`folder`, `session`).""",
'agents.funnel': """The funnel: a model proposes a call, gates judge it, and an effect port carries out what passed them all.

Here: `judge` takes one proposal through the gates; `catalogue` says what may be proposed, `repair` what may be mended.
`gates` has the order, `lookups` the sources of evidence, `file` the funnel file. The page beside this file says what
stands. Not here: carrying out (`effects`), cases and profiles for people (`workbench.funnel`).""",
'agents.funnel.gates': """The gates of a proposed call, in their order: form, meaning, then world and authority.

`order` has them all. Execution comes after, in ticketgate.agents.effects.""",
'agents.funnel.lookups': """Where evidence is looked up: adapters of the look-up port. `http`, `redis` and `signed`, each loaded by itself.

Not here: what the evidence says (`evidence` of the funnel), which source a file names (`file.opening`).""",
'agents.funnel.file': """The funnel file and the catalogue's file: from TOML to what a worker opens, or one line that says why not.

Here: what each may say, what contradicts, the release grid that holds automatic effects, and opening what is named.
Not here: the catalogue as the gates use it (`catalogue`).""",
'agents.effects': """Carrying out effects: the port to providers, the executor, the reconciler, and the rules between them.

Here: when an effect is sent, read back, settled or held. `adapters` reach out. Importing this package loads nothing.
Not here: the ledger on Redis (ticketgate.store.ledger), the lane that calls the executor (streams.roles.effects).""",
'agents.effects.adapters': """Providers and ledgers behind the ports: over HTTP, in a Redis hash, in memory. Each is loaded by itself.

Not here: what an answer means for an effect (`rules`).""",
'agents.workbench': """For people and CI, and for no worker: an import contract holds that.

`policy` reads policies as logic and tries them; `funnel` runs cases of proposed calls and measures the gates.""",
'agents.workbench.policy': """Policies on the workbench: lint, compare, show, import, try on cases, judge recorded decisions again.

Not here: the language and its judging (ticketgate.agents.policy).""",
'agents.workbench.funnel': """The funnel on the workbench: files of cases, the failure profile, records exported as cases.

Not here: the gates (ticketgate.agents.funnel), the executor (ticketgate.agents.effects).""",
'store': """What Redis keeps: claims, lanes' state, attempts at cases, the ledger of effects. Scripts, each whole or not at all.

Here: `keys` names all of it, `tokens` say who may write, `durability` when a write counts, `conditions` what Redis
must be.
Not here: when a lane calls which (streams.lane), what a person restores from the outputs (streams.operations).""",
'store.lane_state': """What Redis knows of a lane: how far it got, ranges passed over, hangs, orders to skip.

Not here: who may write (`tokens`), who owns a key (`claims`), what the lane does with it (streams.lane).""",
'store.ledger': """How far each effect is: one hash an effect, its states and transitions, and its restoring from receipts.

Not here: what is sent when (ticketgate.agents.effects).""",
'codecs': """What crosses a wire: records, answers, headers and keys, read strictly and written in one form.

Stands on nothing but jiter, orjson and pydantic. `values` turns bytes into values, `records` has a module a record,
`systemone` questions and answers. Each module's docstring says what it promises.
Not here: where a record goes, or when (ticketgate.streams).""",
'codecs.values': """Bytes to values and back, strictly: the grammar, the limits, the shape of a record, and reasons that quote.

Not here: which fields a record has (`records`).""",
'codecs.records': """The records, a module each, with their headers, keys and fingerprints; `published` writes their JSON Schemas.

Not here: answers of a model (`systemone`), how bytes are read (`values`).""",
'codecs.systemone': """The System One protocol: questions, answers and their checks, JSON Schema to questions, the wire's errors.

Not here: who answers (ticketgate.agents.scoring), the endpoint (streams.process.web).""",
}
