"""A broker's public keys, with and without secret halves."""

from headwater.model.nkey import NkeyKind, decode_nkey, encode_nkey
from headwater.options.access import AuthCalloutOptions, AuthorizationOptions, UserOptions
from headwater.options.broker import BrokerOptions
from headwater.server.identity import identity_for


def test_a_broker_has_secret_keys_only_where_it_has_to_prove_who_it_is() -> None:
    callout = AuthCalloutOptions(issuer=encode_nkey(NkeyKind.ACCOUNT, bytes(32)), auth_users=("ann",))
    users = (UserOptions(username="ann", password="a"),)
    plain = identity_for(BrokerOptions())
    proving = identity_for(BrokerOptions(authorization=AuthorizationOptions(users=users, callout=callout)))
    assert plain.keys is None
    assert proving.keys is not None
    for identity in (plain, proving):
        assert decode_nkey(identity.server_id, NkeyKind.SERVER) is not None
        assert decode_nkey(identity.xkey, NkeyKind.CURVE) is not None
    assert identity_for(BrokerOptions()) != plain
