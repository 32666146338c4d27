"""What the whole model of twelve layers says, and the eight layers in a form that can be trained.

Words, places and the layers below the map stay as they are, so a step costs little more than half.
"""

import random
from collections.abc import Iterator, Sequence

import torch
from bert import LAYERS, Bert, Student, attention_bias
from corpus import FRAMES, Corpus
from encoder import HIDDEN, MAP_BEFORE
from student import batches
from tokenizers import Tokenizer
from torch.nn import functional
from triage import parts, tickets

# Texts whose vectors are to stay what the whole model says of them.
PUBLIC, OWN, LONG = 6000, 500, 60


def texts_to_read(corpus: Corpus, chance: random.Random) -> list[str]:
    """Texts of every kind that the encoder will read: tickets, questions, turns of phrase, some long ones."""
    public = [text for text, _ in corpus.banking + corpus.clinc] + corpus.out_of_scope
    public += [text for text, _ in corpus.nlupp]
    asked = [text for kind in parts()["questions"].values() for text in kind["texts"]]
    for phrases in corpus.phrases.values():
        for intent, phrase in phrases.items():
            topic = intent.replace("_", " ").rstrip("?")
            asked += [frame.format(vp=phrase, np=topic) for frame in chance.sample(sorted(set(FRAMES)), 3)]
            asked.append(topic)
    own = [text for text, _, _ in tickets(OWN, chance)]
    texts = {*chance.sample(public, PUBLIC), *asked, *own}
    texts |= {" ".join(chance.sample(public + own, chance.randint(3, 7))) for _ in range(LONG)}
    return sorted(text for text in texts if text.strip())


def vectors_of_all(weights: dict, texts: Sequence[str], tokenizer: Tokenizer) -> torch.Tensor:
    """What the whole model says of the texts: [texts, HIDDEN], of length 1."""
    teacher = Bert(weights, range(LAYERS)).eval()
    aim = torch.zeros(len(texts), HIDDEN)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        for places, ids, mask in batches(texts, tokenizer):
            hidden, bias = teacher.embed(ids), attention_bias(mask)
            for layer in teacher.layers[:-1]:
                hidden = layer(hidden, bias.to(hidden.dtype))
            aim[places] = functional.normalize(teacher.layers[-1].first(hidden, bias).float(), dim=1)
    return aim


def upper_half(student: Student) -> Iterator[torch.nn.Parameter]:
    """The map and the layers above it."""
    yield from student.map.parameters()
    yield from student.layers[MAP_BEFORE:].parameters()


def vectors(student: Student, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """[texts, HIDDEN], of length 1; what lies below the map takes no part in training."""
    bias = attention_bias(mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.no_grad():
            hidden = student.embed(ids)
            for layer in student.layers[:MAP_BEFORE]:
                hidden = layer(hidden, bias.to(hidden.dtype))
        hidden = student.map(hidden)
        for layer in student.layers[MAP_BEFORE:-1]:
            hidden = layer(hidden, bias.to(hidden.dtype))
        hidden = student.layers[-1].first(hidden, bias)
    return functional.normalize(hidden.float(), dim=1)
