"""The funnel file: what it takes, and the one line for what it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ticketgate.agents.effects.adapters.http import HttpPort
from ticketgate.agents.effects.adapters.redis import RedisPort
from ticketgate.agents.effects.port import LATEST_START_S
from ticketgate.agents.funnel.file.funnel_file import (
    FunnelFileError,
    load_funnel_file,
    open_lookup,
    open_providers,
)
from ticketgate.agents.funnel.file.release import require_release

EXAMPLES = Path(__file__).parents[3] / "agents" / "funnel" / "examples"

GOOD = """catalogue = "payments"

[lookup.authority]
adapter = "http"
url = "http://127.0.0.1:8000/authority/{actor_id}"

[lookup.world]
adapter = "redis"
url = "redis://127.0.0.1:6379/0"
key = "world:{values.account_id}"

[providers.bank]
adapter = "http"
url = "http://127.0.0.1:8000/transfers"
read_back_url = "http://127.0.0.1:8000/transfers/by-key/{key}"
idempotent_by_key = true
settle_s = 30

[tools.schedule_transfer]
provider = "bank"
contribution = "arguments"
consequence = "irreversible"
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "funnel.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(FunnelFileError) as caught:
        load_funnel_file(written(tmp_path, text))
    said = str(caught.value)
    assert "\n" not in said
    return said.removeprefix(f"{tmp_path}/")


@pytest.mark.parametrize("name", ["payments", "support"])
async def test_the_examples_load_open_and_pass_release(name: str) -> None:
    file = load_funnel_file(EXAMPLES / f"{name}.funnel.toml")

    require_release(file)
    lookup, providers = open_lookup(file), open_providers(file)
    await lookup.close()
    await providers.close()

    assert file.catalogue is not None
    assert file.catalogue.name == name
    assert file.unprovided == ()
    assert set(providers) == set(file.providers)


async def test_what_is_declared_is_what_is_opened(tmp_path: Path) -> None:
    ledger = '[providers.ledger]\nadapter = "redis"\nurl = "redis://127.0.0.1:6379"\nprefix = "done:"\n'
    file = load_funnel_file(written(tmp_path, GOOD + ledger))

    providers = open_providers(file)

    bank, done = providers["bank"], providers["ledger"]
    await providers.close()
    assert isinstance(bank, HttpPort)
    assert isinstance(done, RedisPort)
    assert done._states == file.states
    assert set(file.states) == {"schedule_transfer"}
    assert bank.is_idempotent_by_key
    # A request may leave so late, and take effect until its time is over.
    assert bank.settle_s == LATEST_START_S + 10 + 30


def test_a_catalogue_lies_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text((EXAMPLES / "payments.toml").read_text(encoding="utf-8"))

    file = load_funnel_file(written(tmp_path, GOOD.replace('"payments"', '"mine.toml"', 1)))

    assert file.catalogue is not None
    assert file.catalogue.name == "payments"


def test_policies_alone_need_no_catalogue(tmp_path: Path) -> None:
    text = GOOD[GOOD.index("[providers.bank]") :].replace("schedule_transfer", "assign_queue")

    file = load_funnel_file(written(tmp_path, text))

    assert (file.catalogue, file.lookup, file.unprovided) == (None, None, ())
    assert not file.is_automatic("assign_queue")
    assert not file.is_automatic("unheard_of")


def test_effects_that_nobody_carries_out_are_told(tmp_path: Path) -> None:
    text = GOOD[: GOOD.index("[tools.")]

    assert load_funnel_file(written(tmp_path, text)).unprovided == ("schedule_transfer",)


def test_a_field_of_another_name_is_refused_with_the_nearest(tmp_path: Path) -> None:
    assert refusal(tmp_path, GOOD.replace("idempotent_by_key", "idempotent_key")) == (
        'funnel.toml:16: unknown field "idempotent_key" in providers.bank; did you mean "idempotent_by_key"?'
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'catalogue = "payments"',
            'catalog = "payments"',
            'unknown field "catalog" in the file; did you mean "cat',
        ),
        ("[tools.schedule_transfer]", "[tool.schedule_transfer]", 'did you mean "tools"?'),
        ("[lookup.world]", "[lookup.worlds]", 'unknown field "worlds" in lookup; did you mean "world"?'),
        ("consequence", "consequences", 'in tools.schedule_transfer; did you mean "consequence"?'),
        ('contribution = "arguments"\n', "", 'tools.schedule_transfer has no "contribution"; add it'),
        ('"arguments"', '"argument"', "tools.schedule_transfer.contribution: input should be 'none'"),
        (
            'adapter = "http"\nurl = "http://127.0.0.1:8000/t',
            'url = "http://127.0.0.1:8000/t',
            'no "adapter"; add',
        ),
        ('"redis"', '"rediss"', "lookup.world: no such adapter; there are http, redis, signed"),
        ("settle_s = 30", 'settle_s = "30"', "providers.bank.settle_s: input should be a valid number"),
        ("settle_s = 30", "settle_s = -1", "providers.bank.settle_s: "),
        ("settle_s = 30", "settle_s = nan", "settle_s is nan; write a finite number"),
        ("settle_s = 30\n", "", "read_back_url without settle_s; add the seconds"),
        (
            'read_back_url = "http://127.0.0.1:8000/transfers/by-key/{key}"\n',
            "",
            "settle_s without read_back_url",
        ),
        ("by-key/{key}", "by-key/", "providers.bank.read_back_url lacks {key}"),
        ("by-key/{key}", "by-key/{id}", "has no place {id}; there are {key}"),
        ("{actor_id}", "", "lookup.authority.url lacks {actor_id}"),
        ("{actor_id}", "{actor_id}/{values.payee_id}", "has no place {values.payee_id}"),
        ("{values.account_id}", "{values.}", "has no place {values.}"),
        ("{values.account_id}", "{account_id", "a brace that belongs to no place"),
        ('http://127.0.0.1:8000/transfers"', 'ftp://host/transfers"', "providers.bank.url is no URL"),
        ('http://127.0.0.1:8000/transfers"', 'http://me:pw@host/"', "carries a password; name its variable"),
        ("http://127.0.0.1:8000/authority", "http://{tenant}.example/authority", "a place in its host"),
        ("redis://127.0.0.1", "redis://:pw@127.0.0.1", "lookup.world.url carries a password"),
        ('url = "redis://127.0.0.1:6379/0"\n', "", "lookup.world needs url or url_env"),
        ("redis://127.0.0.1:6379/0", "127.0.0.1:6379", "lookup.world.url is no URL of a Redis"),
        ('provider = "bank"', 'provider = "bnak"', 'no provider "bnak"; did you mean "bank"?'),
        ("[tools.schedule_transfer]", "[tools.quote_transfer]", "quote_transfer only observes; remove it"),
        ("[tools.schedule_transfer]", "[tools.schedule_transfers]", 'write "schedule_transfer"'),
        ('catalogue = "payments"\n', "", "lookup without catalogue"),
        ('"payments"', '"none.toml"', "the catalogue cannot be read: No such file or directory"),
        ("[lookup.world]", "[lookup.world", "not TOML: "),
    ],
)
def test_what_cannot_be_meant_is_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD

    assert said in refusal(tmp_path, GOOD.replace(old, new, 1))


@pytest.mark.parametrize(
    ("added", "said"),
    [
        (
            'stands.reconcile_staff = "x"',
            'no requirement "reconcile_staff"; did you mean "reconcile_staffed"?',
        ),
        ('stands.undo_tried = " "', "tools.schedule_transfer.stands.undo_tried: string should match pattern"),
    ],
)
def test_what_stands_is_a_requirement_of_the_grid(tmp_path: Path, added: str, said: str) -> None:
    assert said in refusal(tmp_path, f"{GOOD}{added}\n")


def test_automatic_and_irreversible_without_a_read_back_is_refused(tmp_path: Path) -> None:
    blind = "\n".join(line for line in GOOD.split("\n") if not line.startswith(("read_back_url", "settle_s")))

    assert 'automatic and irreversible, but provider "bank" cannot be read back' in refusal(
        tmp_path, f"{blind}automatic = true\n"
    )


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('algorithms = ["none"]\nkey_files = ["a.pem"]', 'no algorithm "none"'),
        ('algorithms = ["ES265"]\nkey_files = ["a.pem"]', 'did you mean "ES256"?'),
        ('algorithms = ["HS256", "RS256"]\nkey_env = "K"', "of a shared secret and of public keys together"),
        ('algorithms = ["HS256"]\nkey_files = ["a.pem"]', "HS256 has a shared secret; name its variable"),
        ('algorithms = ["RS256"]\nkey_env = "K"', "RS256 has public keys; name their PEM files"),
        ("algorithms = []", "lookup.world.algorithms: "),
        ('algorithms = ["RS256"]\nkey_file = "a.pem"', 'did you mean "key_files"?'),
    ],
)
def test_a_signed_source_lists_algorithms_of_one_kind(tmp_path: Path, source: str, said: str) -> None:
    redis = 'adapter = "redis"\nurl = "redis://127.0.0.1:6379/0"\nkey = "world:{values.account_id}"'
    assert redis in GOOD

    assert said in refusal(tmp_path, GOOD.replace(redis, f'adapter = "signed"\n{source}'))


def test_a_file_that_is_none_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(FunnelFileError, match="cannot be read: No such file"):
        load_funnel_file(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"catalogue = 'caf\xe9'")
    with pytest.raises(FunnelFileError, match=r"latin\.toml:1: not UTF-8: byte 0xe9; save the file as UTF-8"):
        load_funnel_file(tmp_path / "latin.toml")
    (tmp_path / "deep.toml").write_text(f"catalogue = {'[' * 5_000}{']' * 5_000}")
    with pytest.raises(FunnelFileError, match="nested more than 64 levels deep"):
        load_funnel_file(tmp_path / "deep.toml")


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "BANK_TOKEN is not set"), ("  ", "BANK_TOKEN is not set"), ("a\nb", "to one line of text")],
)
def test_a_secret_that_is_missing_is_named_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: Any, said: str
) -> None:
    if value is not None:
        monkeypatch.setenv("BANK_TOKEN", value)
    file = load_funnel_file(
        written(tmp_path, GOOD.replace("settle_s = 30", 'settle_s = 30\ntoken_env = "BANK_TOKEN"'))
    )

    with pytest.raises(FunnelFileError, match=said):
        open_providers(file)


def test_a_redis_url_from_the_environment_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = GOOD.replace('url = "redis://127.0.0.1:6379/0"', 'url_env = "FACTS"')
    file = load_funnel_file(written(tmp_path, text))

    monkeypatch.setenv("FACTS", "http://:pa55@host")
    with pytest.raises(FunnelFileError, match="FACTS holds no URL of a Redis") as caught:
        open_lookup(file)
    monkeypatch.setenv("FACTS", "redis://:pa55@127.0.0.1:6379/0")
    open_lookup(file)

    assert "pa55" not in str(caught.value)


def test_loading_a_file_loads_no_adapter() -> None:
    heavy = ("aiohttp", "redis", "jwt", "faust", "aiokafka")
    code = (
        "import sys; from pathlib import Path; import ticketgate.streams.cli.funnel.release; "
        "from ticketgate.agents.funnel.file.funnel_file import load_funnel_file; "
        "from ticketgate.agents.funnel.file.release import require_release; "
        f"require_release(load_funnel_file(Path({str(EXAMPLES / 'support.funnel.toml')!r}))); "
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
