"""The table of the protocol's law covers what both documents name, and nothing twice."""

from headwater.wire import client_ops
from headwater.wire.verbs import LAW, Phase, Sender, Verb, verbs_of


def test_every_verb_is_somebodys() -> None:
    assert {verb for _, _, verb in LAW} == set(Verb)


def test_only_connect_opens_a_conversation_that_needs_credentials() -> None:
    assert verbs_of(Sender.CLIENT, Phase.AUTHENTICATING) == {Verb.CONNECT}


def test_a_client_never_sends_what_only_servers_send() -> None:
    assert not verbs_of(Sender.CLIENT, Phase.OPEN) & {Verb.MSG, Verb.HMSG}
    assert not verbs_of(Sender.SERVER, Phase.OPEN) & {Verb.PUB, Verb.HPUB, Verb.SUB, Verb.UNSUB, Verb.CONNECT}


def test_the_parser_takes_its_spellings_from_the_table() -> None:
    assert set(client_ops._SPELLINGS.values()) == verbs_of(Sender.CLIENT, Phase.OPEN)
