"""The JetStream API of other brokers in the cluster, for clients of one that has no streams of its own.

nats-servers serve the API in their system account, into which every account imports `$JS.API.>`: who is asked is found by
interest, across routes. A broker without streams does the same, so that its clients reach the streams of real servers as
those of a nats-server without JetStream do:

    a client of $G asks $JS.API.STREAM.INFO.x ─▶ in $SYS, with Nats-Request-Info: the client and its server
                                              ─▶ to the peers that serve it there; the answer comes back to its inbox

Pulls and direct gets are not asked there: they have subjects of their own in the client's account, and interest in them
crosses routes as all interest does. Where no peer serves the API (or one of ours does, in the account itself) nothing is
passed on, and a request without a receiver gets "no responders", as before.

Source: nats-server 2.15, enableJetStreamInfoServiceImportOnly and processServiceImport.
"""

from typing import TYPE_CHECKING

from headwater.exchange.access_options import ExportOptions, ImportOptions
from headwater.exchange.import_rules import CheckedImport
from headwater.exchange.imports import ServiceImport
from headwater.model.subject_rename import SubjectRename, common_pattern

if TYPE_CHECKING:
    from headwater.exchange.account import Account
    from headwater.message_tracing.message_trace import MessageTrace

API = "$JS.API.>"
_ELSEWHERE = (b"$JS.API.CONSUMER.MSG.NEXT.", b"$JS.API.DIRECT.GET.")


class JetStreamImport(ServiceImport):
    """One account's. `system`: where the API is served."""

    def __init__(self, importer: "Account", system: "Account") -> None:
        wanted = ImportOptions(account=system.name, subject=API, kind="service", share=True)
        offered = ExportOptions(subject=API, kind="service")
        super().__init__(importer, system, CheckedImport(wanted, SubjectRename(API), offered))

    def _on_request(self, subject: bytes, reply: bytes, header_block: bytes, payload: bytes) -> bool:
        if subject.startswith(_ELSEWHERE) or not self._exporter.router.has_interest(subject):
            return False
        return super()._on_request(subject, reply, header_block, payload)

    def _on_traced(
        self, trace: "MessageTrace", subject: bytes, reply: bytes, header_block: bytes, payload: bytes
    ) -> bool:
        if subject.startswith(_ELSEWHERE) or not self._exporter.router.has_interest(subject):
            return False
        return super()._on_traced(trace, subject, reply, header_block, payload)


def needs_import(account: "Account", system: "Account") -> bool:
    """Whether `account` is to have one: not where it imports the API from an account that its options name."""
    if account is system:
        return False
    imports = account.options.imports if account.options is not None else ()
    local = [(each.to or each.subject).encode() for each in imports if each.kind == "service"]
    return all(common_pattern(each, API.encode()) is None for each in local)
