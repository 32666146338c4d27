"""Policies: the document, what it means, and what its rules say of an assignment.

`load_policy` reads a file, `parse_policy` a text; `violations` judges. The language is described in README.md
beside this file. Nothing here loads an inference engine.
Not here: lint, comparison and trial of policies (`workbench.policy`).
"""

from ticketgate.agents.policy.effects import EffectTemplate, ProposedEffect
from ticketgate.agents.policy.errors import PolicyError, Problem
from ticketgate.agents.policy.load import load_policy, parse_policy
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.policy.rules import Rule, violations

__all__ = [
    "EffectTemplate",
    "Policy",
    "PolicyError",
    "Problem",
    "ProposedEffect",
    "Rule",
    "load_policy",
    "parse_policy",
    "violations",
]
