"""001: a proposed call passes gates of its own for form, meaning, world, authority and outcome."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from ticketgate.agents.effects.adapters.memory import MemoryProvider
from ticketgate.agents.funnel.catalogue import compile_catalogue
from ticketgate.agents.funnel.evidence import World
from ticketgate.agents.funnel.file.catalogue_file import example
from ticketgate.agents.funnel.repair import BUDGETS
from ticketgate.agents.funnel.values import read_money
from ticketgate.codecs.systemone import SchemaError, questions_from_json_schema
from ticketgate.codecs.verdict import Stage

from ..support.funnel import (
    FLOOR,
    PAYMENTS,
    VALUES,
    WORLD,
    arguments,
    attempt,
    authority,
    bare_call,
    confirmation,
    request,
    run,
    said,
    with_conditions,
)
from . import product
from .rows import refusal, row

SCHEDULED = arguments()
QUOTED = dict(VALUES)


def call(tool: str = "schedule_transfer", **changed: Any) -> str:
    given = {**(SCHEDULED if tool == "schedule_transfer" else QUOTED), **changed}
    return bare_call({name: value for name, value in given.items() if value is not None}, tool)


def outcome(text: str, **given: Any) -> tuple[str, str, tuple[str, ...]]:
    return said(run(text, **given))


PRINTED = {
    "positive_quote": "positive_quote accept outcome -",
    "wrong_tool_valid_shape": "wrong_tool_valid_shape reject tool_selection"
    " requested:quote, proposed:schedule_transfer",
    "semantic_amount_drift": "semantic_amount_drift repair semantics amount_gbp:proposal=660.00:request=600.00",
    "timeout_after_commit": "timeout_after_commit accept readback transport_timed_out_after_commit"
    " [verified_by_readback tr_0001]",
    "duplicate_same_key": "duplicate_same_key accept postcondition - [replayed tr_0001]",
    "same_key_different_effect": "same_key_different_effect reject idempotency"
    " idempotency key reused for a different effect",
    "valid_but_unauthorised": "valid_but_unauthorised deny authority amount_exceeds_limit:500.00",
}
for _name, _line in PRINTED.items():
    row("001", f"the harness prints {_name}", [_line], lambda name=_name: [
        line for line in product.lines("funnel", "--example", "payments") if line.startswith(f"{name} ")
    ])  # fmt: skip
row("001", "one committed transfer, zero duplicate effects", True,
    lambda: product.lines("funnel", "--example", "payments")[-1].endswith("effects committed: 1"))  # fmt: skip

row("001", "the extraction that lies: an unbounded integer cannot be asked, by name", True,
    lambda: refusal(lambda: questions_from_json_schema({
        "type": "object",
        "properties": {
            "sentiment": {"enum": ["positive", "negative", "neutral"]},
            "delay_days": {"type": "integer", "minimum": 0},
        },
        "required": ["sentiment", "delay_days"],
        "additionalProperties": False,
    }), SchemaError).startswith("properties.delay_days: "))  # fmt: skip
row("001", "the quote's fee: 0.50 and 0.2 % of 600.00", {"fee_gbp": "1.70"},
    lambda: dict(run(call("quote_transfer"), asked=request("quote")).decision.result))  # fmt: skip
row("001", "a quote creates no effect", (None, False), lambda: (
    run(call("quote_transfer"), asked=request("quote")).effect,
    run(call("quote_transfer"), asked=request("quote")).decision.effect_created,
))  # fmt: skip

# Parse and envelope.
row("001", "parse: where JSON ends", ("repair", "parse", ("invalid_json_at_1",)), lambda: outcome("{"))
row("001", "parse: a top level that is no object", ("repair", "parse", ("top_level_must_be_object",)),
    lambda: outcome("[]"))  # fmt: skip
for _name, _text in {
    "a field is missing": '{"call_id": "c", "tool": "schedule_transfer"}',
    "a field too many": json.dumps({**json.loads(call()), "note": "x"}),
    "an empty call id": json.dumps({**json.loads(call()), "call_id": ""}),
    "a tool that is no text": json.dumps({**json.loads(call()), "tool": 3}),
    "arguments that are no object": json.dumps({**json.loads(call()), "arguments": []}),
}.items():
    row("001", f"envelope: {_name}", ("repair", "envelope", "invalid_call_envelope"),
        lambda text=_text: (*outcome(text)[:2], outcome(text)[2][0]))  # fmt: skip

# Shape.
row(
    "001",
    "an unknown tool",
    ("repair", "tool_catalogue", ("unknown_tool",)),
    lambda: outcome(call("pay_now")),
)
row("001", "missing:payment_date", ("repair", "schema", ("missing:payment_date",)),
    lambda: outcome(call(payment_date=None)))  # fmt: skip
row("001", "wrong_type:amount_gbp", ("repair", "schema", ("wrong_type:amount_gbp",)),
    lambda: outcome(call(amount_gbp=600)))  # fmt: skip
row("001", "missing, extra and wrong_type together",
    ("repair", "schema", ("missing:payment_date", "extra:note", "wrong_type:amount_gbp")),
    lambda: outcome(call(payment_date=None, note="x", amount_gbp=600)))  # fmt: skip
for _name, _changed in {
    "three decimal places": {"amount_gbp": "600.001"},
    "no decimal amount": {"amount_gbp": "six hundred"},
    "an amount of 0": {"amount_gbp": "0"},
    "a negative amount": {"amount_gbp": "-600.00"},
    "a date that is none": {"payment_date": "2026-02-30"},
    "a negative floor": {"minimum_remaining_balance_gbp": "-1.00"},
    "a key of fewer than 8 characters": {"idempotency_key": "short"},
}.items():
    row(
        "001",
        f"lexical: {_name}",
        ("repair", "schema"),
        lambda changed=_changed: outcome(call(**changed))[:2],
    )
row("001", "600, 600.0 and 600.00 are one amount", 1,
    lambda: len({read_money(text) for text in ("600", "600.0", "600.00")}))  # fmt: skip

# Selection, semantics, world, authority.
row("001", "selection: a quote request and a scheduling call",
    ("reject", "tool_selection", ("requested:quote", "proposed:schedule_transfer")),
    lambda: outcome(call(), asked=request("quote")))  # fmt: skip
for _field, _value in {
    "account_id": "acct_other",
    "payee_id": "supplier_8",
    "amount_gbp": "660.00",
    "payment_date": "2026-09-05",
}.items():
    row("001", f"semantics: another {_field}", ("repair", "semantics", (
        f"{_field}:proposal={_value}:request={VALUES[_field]}",
    )), lambda field=_field, value=_value: outcome(call(**{field: value})))  # fmt: skip
row("001", "semantics: the floor changed", ("repair", "semantics"),
    lambda: outcome(call(minimum_remaining_balance_gbp="100.00"))[:2])  # fmt: skip
row("001", "semantics: a condition that the tool has no field for", ("review", "semantics"),
    lambda: outcome(call(), asked=with_conditions(request(), **FLOOR, partner_agrees="yes"))[:2])  # fmt: skip
row("001", "world: the balance would not keep the floor",
    ("reject", "world_state", ("remaining_balance:900.00", "required_floor:1000.00")),
    lambda: outcome(call(), world=World(facts={"current_balance_gbp": "1500.00"})))  # fmt: skip
row("001", "authority: the tool is not delegated", ("deny", "authority", ("tool_not_delegated",)),
    lambda: outcome(call(), may=authority(tools=frozenset({"quote_transfer"}))))  # fmt: skip
row("001", "authority: £600 under a £500 limit", ("deny", "authority", ("amount_exceeds_limit:500.00",)),
    lambda: outcome(call(), may=authority("500.00")))  # fmt: skip
row("001", "authority: no confirmation", ("deny", "authority", ("explicit_confirmation_missing",)),
    lambda: outcome(call(), may=authority(confirmations=())))  # fmt: skip
row("001", "authority: a confirmation of another amount", ("deny", "authority", "explicit_confirmation_missing"),
    lambda: (lambda found: (*found[:2], found[2][0]))(
        outcome(call(), may=authority(confirmations=(confirmation(amount_gbp="500.00"),)))
    ))  # fmt: skip
row("001", "authority: a channel that may not schedule", ("deny", "authority", ("channel_not_permitted:phone",)),
    lambda: outcome(call(), asked=replace(request(), channel="phone"),
                    may=authority(channels={"schedule_transfer": ("app",)})))  # fmt: skip
row("001", "permission revoked after the proposal, before the effect", ("deny", "authority", 0), lambda: (
    lambda bank: (*outcome(call(), later=authority(tools=frozenset()), provider=bank)[:2], bank.committed)
)(MemoryProvider()))  # fmt: skip


def failing(*execute: Any, read_back: Any = ()) -> tuple[tuple[str, str, tuple[str, ...]], int]:
    bank = MemoryProvider()
    bank.fail_next(execute=execute, read_back=read_back)
    return outcome(call(), provider=bank), bank.committed


# Outcome.
row("001", "a time-out after the commit is read back",
    (("accept", "readback", ("transport_timed_out_after_commit",)), 1),
    lambda: failing("timeout_after_commit"))  # fmt: skip
row("001", "a time-out before the commit may be sent again, once", ("accept", 1),
    lambda: (failing("timeout_before_commit")[0][0], failing("timeout_before_commit")[1]))  # fmt: skip
row("001", "no read-back: held, and no blind retry", (("unknown", "outcome", ("timeout_and_no_readback",)), 1),
    lambda: failing("timeout_after_commit", read_back=("unreadable",)))  # fmt: skip
row("001", "a success that does not read back", (("unknown", "postcondition", ("effect_not_verified",)), 1),
    lambda: failing(read_back=("unreadable",)))  # fmt: skip
row("001", "read-back checks the status too", (("reject", "readback", ("undone:status=cancelled",)), 1),
    lambda: failing("timeout_after_commit", read_back=("state:cancelled",)))  # fmt: skip


def retried() -> tuple[int, str]:
    bank = MemoryProvider()
    bank.fail_next(execute=("timeout_after_commit",))
    first = run(call(), provider=bank)
    again = run(call(), provider=bank, case_id="case_2")
    both = {each.effect.provider_id for each in (first, again) if each.effect is not None}
    return bank.committed, ",".join(sorted(map(str, both)))


row("001", "the central property: a time-out and a retry are one transfer", (1, "tr_0001"), retried)
row("001", "one key and another amount is a collision",
    ("reject", "idempotency", ("idempotency key reused for a different effect",)), lambda: (
        lambda bank: (run(call(), provider=bank), outcome(
            call(amount_gbp="700.00"), provider=bank, case_id="case_2",
            asked=request(values={**VALUES, "amount_gbp": "700.00"}),
            may=authority(confirmations=(confirmation(amount_gbp="700.00"),)),
        ))[1]
    )(MemoryProvider()))  # fmt: skip

# Repair.
for _stage, _budget in {"parse": 1, "semantics": 1, "authority": 0, "outcome": 0}.items():
    row("001", f"repair budget of {_stage}", _budget, lambda stage=_stage: BUDGETS.get(Stage(stage), 0))


def second(*texts: str) -> Any:
    """What came of the last of several attempts at one case."""
    committed: list[Any] = []
    for text in texts[:-1]:
        committed.append(attempt(text, run(text, committed=committed)))
    return run(texts[-1], committed=committed)


def repair_of(text: str) -> Any:
    return run(text).repair


row("001", "a repair permits the mismatched field alone, with the source's value",
    (("amount_gbp",), {"amount_gbp": "600.00"}, "request"), lambda: (
        repair_of(call(amount_gbp="660.00")).permitted, dict(repair_of(call(amount_gbp="660.00")).anchors),
        repair_of(call(amount_gbp="660.00")).source_of_truth))  # fmt: skip
row("001", "a repair receipt has before and after", ({"amount_gbp": "660.00"}, {"amount_gbp": "600.00"}, "repaired"),
    lambda: (lambda r: (dict(r.before), dict(r.after), str(r.stop_reason)))(
        second(call(amount_gbp="660.00"), call()).repair
    ))  # fmt: skip
row("001", "changing another field ends the repair", "unpermitted_change",
    lambda: second(call(amount_gbp="660.00"), call(payee_id="supplier_8")).verdict.reasons[0])  # fmt: skip
row("001", "a budget ends", "budget_exhausted",
    lambda: second(call(amount_gbp="660.00"), call(amount_gbp="661.00")).verdict.reasons[0])  # fmt: skip
row("001", "repeated disagreement on the tool asks a clarifying question", ("repair", "tool_selection", True),
    lambda: (lambda v: (str(v.status), str(v.stage), v.reasons[0].startswith("clarify:")))(
        second(call("pay_now"), call("quote_transfer")).verdict
    ))  # fmt: skip
row("001", "a deterministic repair where only the syntax is broken, in the receipt", ("accept", True), lambda: (
    lambda found: (str(found.verdict.status), bool(found.decision.mended))
)(run(call()[:-1], catalogue=replace(PAYMENTS, mends_syntax=True))))  # fmt: skip

# The catalogue.
REQUESTS = json.dumps({"request": request().to_json(), "world": {"facts": dict(WORLD.facts)}})
for _form in ("json-schema", "openai", "anthropic", "google"):
    row("001", f"the catalogue goes out as {_form}, with its hash",
        compile_catalogue(PAYMENTS, request(), WORLD.facts).ref.hash,
        lambda form=_form: product.printed("funnel", "-", "--offered", "--format", form, given=REQUESTS)
        ["catalogue"]["hash"])  # fmt: skip
row("001", "a provider's own call object is a proposal", "accept", lambda: outcome(json.dumps(
    {"type": "tool_use", "id": "t", "name": "schedule_transfer", "input": SCHEDULED}
))[0])  # fmt: skip
row("001", "abstaining is right where no tool serves the request", ("accept", "abstention"), lambda: outcome(
    '{"call_id": "c", "abstain": "unsupported_operation"}', asked=request("delete_account")
)[:2])  # fmt: skip


@cache
def mutated() -> Any:
    return product.printed("funnel", "--example", "payments", "--mutate")


row("001", "each row of the release instrument is an executable test: no mutation of one's own catalogue passes", [],
    lambda: mutated()["survivors"])  # fmt: skip
for _kind in ("field", "order", "authority", "state", "time-out", "duplicate"):
    row("001", f"mutations of kind {_kind} are generated for the effect", True,
        lambda kind=_kind: mutated()["tools"]["schedule_transfer"][kind] > 0)  # fmt: skip
row("001", "their report is bound to the catalogue's hash", 64, lambda: len(mutated()["catalogue_hash"]))


@cache
def compared() -> Any:
    line = json.loads(example("payments.jsonl").splitlines()[4])
    line = {name: each for name, each in line.items() if name not in ("expect", "faults")}
    requests = json.dumps({**line, "label": {"admissible": ["schedule_transfer"]}})
    script = f"import json, sys\nprint({line['call']!r}[: None if json.load(sys.stdin)['schema'] else -1])"
    predictions = product.written("C over P on form; G on unsafe effects alone", "predictions.md")
    proposer = f"{sys.executable} {product.written(script, 'proposer.py')}"
    return product.printed(
        "funnel",
        "-",
        "--compare",
        "--proposer",
        proposer,
        "--predictions",
        predictions,
        "--json",
        given=requests,
    )


row("001", "the experiment runs P, R, C and G over one request set", {"P", "R", "C", "C-", "G"},
    lambda: set(compared()["systems"]))  # fmt: skip
row("001", "a constraint mends the form", (0, 1), lambda: tuple(
    compared()["systems"][each]["rates"]["conforming"]["numerator"] for each in ("P", "C")
))  # fmt: skip
row("001", "predictions are named by their hash", 64, lambda: len(compared()["predictions_sha256"]))

# What is measured over what.
DENOMINATORS = {
    "parse": "model responses",
    "schema": "parsed responses",
    "selection_precision": "calls, of requests with a known admissible tool set",
    "execution": "authorised calls",
    "verified_outcome": "accepted commands, time-outs among them",
}
for _rate, _over in DENOMINATORS.items():
    row("001", f"{_rate} is measured over", _over, lambda rate=_rate: product.printed(
        "funnel", "--example", "profile", "--profile", "--json"
    )["rates"][rate]["over"])  # fmt: skip
row("001", "cost is per verified outcome", True, lambda: "per_verified_outcome" in product.printed(
    "funnel", "--example", "profile", "--profile", "--json"
)["cost"])  # fmt: skip
GRID = str(resources.files("ticketgate.agents.funnel") / "examples" / "payments.funnel.toml")
row("001", "the release instrument classifies contribution and consequence", True,
    lambda: {"contribution", "consequence"} <= keys_of(product.printed("release", GRID, "--json")))  # fmt: skip


def keys_of(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()
