"""A policy as sentences and as a picture."""

from __future__ import annotations

from ticketgate.agents.policy import parse_policy
from ticketgate.agents.workbench.policy.show import mermaid, sentences

from ....support.deciding import policy, small
from .test_lint import ANGER, KIND, rule


def test_the_seeds_policy_reads_as_sentences() -> None:
    said = sentences(policy(top="abstain_below = 0.6"))

    assert said[0].startswith("support, version 1 (")
    assert said[1] == "urgent is a noul, selected from a probability of 0.5 on: Must this be handled today?"
    assert said[6:] == (
        "an answer less probable than 0.6 sends the ticket to review",
        "rule urgent-requires-review: urgent requires review",
        "rule review-excludes-auto_reply: review excludes auto_reply",
        "rule exactly-one-of-billing-technical: exactly one of billing, technical",
        "an accepted ticket with billing asks for assign_queue",
        "an accepted ticket with auto_reply asks for send_reply",
    )


def test_a_message_that_says_something_else_stands_beside_what_the_rule_means() -> None:
    said = sentences(policy(small(rule('implies = ["a", "b"]\nmessage = "b requires a"', "x"))))

    assert "rule x: a requires b; it is told as: b requires a" in said


def test_every_kind_of_question_is_said() -> None:
    vip = '[questions.vip]\ntype = "noul"\nfrom = "attributes.vip"\n'

    said = sentences(parse_policy(small(KIND + ANGER + vip, top='on_truncation = "allow"\nclean = ["html"]')))

    assert "kind is one of bug, wish, other: ?" in said
    assert "anger is a level from 0 to 2: ?" in said
    assert "vip is a noul, known from attributes.vip" in said
    assert "a ticket that the model could not read to its end may be accepted" in said
    assert "the model reads a ticket without its HTML" in said


def test_the_picture_has_an_arrow_a_crossed_line_and_a_hexagon() -> None:
    picture = mermaid(policy()).splitlines()

    assert picture[0] == "flowchart LR"
    assert '    n0["urgent"]' in picture
    assert '    n0 -->|"urgent-requires-review"| n1' in picture
    assert '    n1 x--x|"review-excludes-auto_reply"| n2' in picture
    assert '    n5{{"exactly one of"}}' in picture
    assert "    n5 --- n3" in picture
    assert '    n6(["assign_queue"])' in picture
    assert "    n3 ==> n6" in picture


def test_labels_of_a_choice_stand_in_a_box_and_an_absent_one_is_dotted() -> None:
    text = KIND + ANGER + rule('implies = ["kind=bug", "!a"]', "x") + rule('forbid = ["anger>=2", "!b"]', "y")

    picture = mermaid(parse_policy(small(text)))

    assert '    subgraph n3["kind"]\n        n4["kind=bug"]\n' in picture
    assert 'n4 -.->|"x"| n0' in picture
    assert '["anger>=2"]' in picture
    assert " -.- n1" in picture


def test_names_cannot_break_out_of_the_picture() -> None:
    picture = mermaid(parse_policy(small(rule('any_of = ["a"]', 'x\\"]; click n0'), nouls="a")))

    assert '"x"]' not in picture
    assert "#quot;" in mermaid(parse_policy(small(rule('implies = ["a", "b"]', 'say \\"x\\"'))))
