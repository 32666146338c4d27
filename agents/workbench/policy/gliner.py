"""A policy document out of a GLiNER2.5 classification schema: its tasks as questions, its constraints as rules.

Read is the form that `ClassificationSchema.to_json()` of the package gliner2 writes: version 3, as in its public
source of September 2026.
Promise: the rules accept exactly the assignments that the constraints allow; what no rule can say is refused by its
place, never left out. Thresholds and wordings come along; models differ, so look at both.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, cast

from ticketgate.codecs.values.strict import JsonValue

SCHEMA_VERSION = 3
# A constraint that would become more rules than these is not one that a person wants to read as rules.
MAX_CLAUSES = 64


class ImportRefusedError(ValueError):
    """The schema cannot be made a policy: where, and why. A person mends it."""


def policy_document(schema: object, *, name: str, version: str) -> dict[str, JsonValue]:
    """The policy, as the document that `parse_policy` reads as JSON. Raises ImportRefusedError."""
    if not isinstance(schema, dict) or schema.get("version") != SCHEMA_VERSION:
        raise ImportRefusedError(
            f"not a classification schema of version {SCHEMA_VERSION}; write one with ClassificationSchema.to_json()"
        )
    tasks = {key: _Task(key, value) for key, value in _mapping(schema.get("tasks"), "tasks").items()}
    questions: dict[str, JsonValue] = {}
    rules: list[JsonValue] = []
    for task in tasks.values():
        questions.update(task.questions())
        rules += task.rules()
    for place, constraint in enumerate(cast("list[Any]", schema.get("constraints", [])), start=1):
        rules += _Constraints(tasks, f"constraint {place}").rules(constraint)
    # What two constraints say alike is said once: the two would share an id.
    rules = [rule for index, rule in enumerate(rules) if rule not in rules[:index]]
    return {"name": name, "version": version, "questions": questions, "rules": rules}


class _Task:
    """One task: a choice or score if exactly one label is taken, else a noul for each label."""

    def __init__(self, name: str, spec: object) -> None:
        self.name = name
        self._spec = _mapping(spec, f"task {name}")
        labels = self._spec.get("labels")
        self.labels: dict[str, str | None] = (
            dict.fromkeys(labels)
            if isinstance(labels, list)
            else dict(_mapping(labels, f"task {name}: labels"))
        )
        self.default = self._spec.get("default")
        self._least = max(self._spec.get("min_labels", 0), 1 if self.default is not None else 0)
        most = self._spec.get("max_labels")
        self._most = len(self.labels) if most is None else most
        self.is_exclusive = self._least == self._most == 1 and most == 1
        self.is_ordered = bool(self._spec.get("ordered")) and self.is_exclusive

    def atom(self, label: str) -> str:
        if not self.is_exclusive:
            return f"{self.name}.{label}"
        return f"{self.name}={list(self.labels).index(label) if self.is_ordered else label}"

    def atoms(self) -> list[str]:
        return [self.atom(label) for label in self.labels]

    def questions(self) -> dict[str, JsonValue]:
        asked = self._spec.get("instruction") or self.name
        if self.is_ordered:
            levels = [f"{label}: {text}" if text else label for label, text in self.labels.items()]
            return {
                self.name: {"type": "score", "instructions": asked, "criteria": cast("JsonValue", levels)}
            }
        if self.is_exclusive:
            return {
                self.name: {
                    "type": "choice",
                    "instructions": asked,
                    "criteria": cast("JsonValue", dict(self.labels)),
                }
            }
        threshold: dict[str, JsonValue] = (
            {"threshold": self._spec["threshold"]} if "threshold" in self._spec else {}
        )
        return {
            self.atom(label): {"type": "noul", "instructions": f"{asked}: {text or label}", **threshold}
            for label, text in self.labels.items()
        }

    def rules(self) -> list[JsonValue]:
        if self.is_exclusive:
            return []
        found = list(self.counted(self._least, self._most))
        if self.default is not None and len(self.labels) > 1:
            others = [f"!{self.atom(label)}" for label in self.labels if label != self.default]
            found.append({"iff": [self.atom(self.default), cast("JsonValue", others)]})
        return found

    def counted(self, least: int, most: int | None) -> Iterator[JsonValue]:
        """At least and at most so many of the labels."""
        of = cast("JsonValue", self.atoms())
        if most is not None and least == most:
            yield {"exactly": {"count": least, "of": of}}
            return
        if least:
            yield {"at_least": {"count": least, "of": of}}
        if most is not None and most < len(self.labels):
            yield {"at_most": {"count": most, "of": of}}


# A formula in conjunctive form: clauses that must all hold, each an alternative of atoms.
Clauses = list[tuple[str, ...]]


class _Constraints:
    """One top-level constraint, read as rules: in its own words where a rule has them, else clause by clause."""

    def __init__(self, tasks: Mapping[str, _Task], where: str) -> None:
        self._tasks = tasks
        self._where = where

    def rules(self, node: Any) -> list[JsonValue]:
        kind = self._kind(node)
        if kind == "And":
            return [rule for child in node["children"] for rule in self.rules(child)]
        if kind == "Cardinality":
            return list(self._task(node).counted(node.get("minimum", 0), node.get("maximum")))
        if kind == "ExactlyOneOf":
            atoms = [self._literal(child) for child in node["children"]]
            if None not in atoms and len(set(atoms)) == len(atoms) > 1:
                return [{"exactly_one": cast("JsonValue", atoms)}]
        if kind in ("Implies", "Iff", "Excludes"):
            names = ("cond", "then") if kind == "Implies" else ("left", "right")
            one, other = (self._conjunction(node[name]) for name in names)
            if one and other and kind == "Excludes":
                return [{"forbid": cast("JsonValue", list(dict.fromkeys(one + other)))}]
            if one and other:
                return [{kind.lower(): cast("JsonValue", [one, other])}]
        return [{"any_of": cast("JsonValue", list(clause))} for clause in self._clauses(node, wanted=True)]

    def _clauses(self, node: Any, *, wanted: bool) -> Clauses:
        """What makes the node true, or false if that is wanted."""
        literal = self._literal(node)
        if literal is not None:
            return [(literal if wanted else _denied(literal),)]
        match self._kind(node):
            case "Not":
                return self._clauses(node["child"], wanted=not wanted)
            case "And":
                parts = [self._clauses(child, wanted=wanted) for child in node["children"]]
                return self._all(parts) if wanted else self._any(parts)
            case "Or":
                parts = [self._clauses(child, wanted=wanted) for child in node["children"]]
                return self._any(parts) if wanted else self._all(parts)
            case "AnySelected" | "AnyOtherSelected" as kind:
                task = self._task(node)
                left_out = task.default if kind == "AnyOtherSelected" else None
                atoms = [task.atom(label) for label in task.labels if label != left_out]
                return [tuple(atoms)] if wanted else [(_denied(atom),) for atom in atoms]
            case "Implies":
                one, other = node["cond"], node["then"]
            case "Excludes":
                one, other = node["left"], {"type": "Not", "child": node["right"]}
            case "Iff":
                return self._all(
                    [
                        self._any(
                            [
                                self._clauses(node["left"], wanted=not side),
                                self._clauses(node["right"], wanted=side is wanted),
                            ]
                        )
                        for side in (True, False)
                    ]
                )
            case kind:
                raise ImportRefusedError(
                    f"{self._where}: {kind} inside another constraint; state it on its own"
                )
        if wanted:
            return self._any([self._clauses(one, wanted=False), self._clauses(other, wanted=True)])
        return self._all([self._clauses(one, wanted=True), self._clauses(other, wanted=False)])

    @staticmethod
    def _all(parts: list[Clauses]) -> Clauses:
        return [clause for part in parts for clause in part]

    def _any(self, parts: list[Clauses]) -> Clauses:
        found: Clauses = []
        for clauses in itertools.product(*parts):
            atoms = tuple(dict.fromkeys(atom for clause in clauses for atom in clause))
            if not any(_denied(atom) in atoms for atom in atoms):
                found.append(atoms)
            if len(found) > MAX_CLAUSES:
                raise ImportRefusedError(f"{self._where}: too deeply nested to be said in rules; split it")
        return found

    def _conjunction(self, node: Any) -> list[str] | None:
        """The atoms of a literal, or of an And of different literals."""
        children = node["children"] if self._kind(node) == "And" else [node]
        atoms = [self._literal(child) for child in children]
        return cast("list[str]", atoms) if None not in atoms and len(set(atoms)) == len(atoms) else None

    def _literal(self, node: Any) -> str | None:
        """The atom that a node is, if it is one."""
        kind = self._kind(node)
        if kind == "Not":
            child = self._literal(node["child"])
            return None if child is None else _denied(child)
        if kind == "LabelRef":
            return self._atom(self._task(node), node["label"])
        if kind == "IsDefault":
            return self._atom(self._task(node), self._task(node).default)
        if kind in ("MinLevel", "MaxLevel", "AtLevel"):
            task = self._task(node)
            if not task.is_ordered:
                raise ImportRefusedError(f"{self._where}: {kind} of {task.name}, which takes no single level")
            return _band(kind, self._atom(task, node["level"]), highest=len(task.labels) - 1)
        return None

    def _atom(self, task: _Task, label: object) -> str:
        if not isinstance(label, str) or label not in task.labels:
            raise ImportRefusedError(f"{self._where}: task {task.name} has no label {label!r}")
        return task.atom(label)

    def _task(self, node: Any) -> _Task:
        task = self._tasks.get(node.get("task"))
        if task is None:
            raise ImportRefusedError(f"{self._where}: no task {node.get('task')!r}")
        return task

    def _kind(self, node: object) -> str:
        return str(_mapping(node, self._where).get("type"))


def _band(kind: str, atom: str, *, highest: int) -> str:
    """The atom of a band of levels, from `risk=1`; bands that are the same are written the same."""
    task, _, level = atom.rpartition("=")
    if kind == "MaxLevel" and int(level) == highest:
        return f"{task}>=0"
    if (kind, int(level)) in (("MinLevel", highest), ("MaxLevel", 0)):
        return atom
    return f"{task}{ {'MinLevel': '>=', 'MaxLevel': '<=', 'AtLevel': '='}[kind] }{level}"


def _denied(atom: str) -> str:
    return atom[1:] if atom.startswith("!") else f"!{atom}"


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ImportRefusedError(f"{where}: not an object")
    return value
