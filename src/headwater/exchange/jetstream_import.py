"""The JetStream API of other brokers in the cluster, for clients of a broker without streams.

nats-servers serve the API in their system account, from which every account imports `$JS.API.>`; a request finds its
server by interest, across routes. A broker without streams does the same, so that its clients reach the streams of real
servers, like clients of a nats-server without JetStream:

    a client of $G asks $JS.API.STREAM.INFO.x ─▶ in $SYS, with Nats-Request-Info: the client and its server
                                              ─▶ to the peers that serve it there; the answer goes to the client's inbox

Pulls and direct gets do not go there: they have their own subjects in the client's account, and interest in them
crosses routes like all interest. If no peer serves the API in the system account (a Headwater peer serves it in the
client's account), nothing is passed on, and a request without a receiver gets "no responders".

Source: nats-server 2.15, enableJetStreamInfoServiceImportOnly and processServiceImport.
"""

from typing import TYPE_CHECKING

from headwater.exchange.imports import ServiceImport
from headwater.model.subject_rename import SubjectRename, common_pattern
from headwater.options.access import ExportOptions, ImportOptions
from headwater.options.import_rules import CheckedImport

if TYPE_CHECKING:
    from headwater.exchange.account import Account
    from headwater.message_tracing.message_trace import MessageTrace

API = "$JS.API.>"
_ELSEWHERE = (b"$JS.API.CONSUMER.MSG.NEXT.", b"$JS.API.DIRECT.GET.")


class JetStreamImport(ServiceImport):
    """The import of one account. `system`: the account in which peers serve the API."""

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
    """Whether `account` needs a JetStreamImport; not if its options already import the API from another account."""
    if account is system:
        return False
    imports = account.options.imports if account.options is not None else ()
    local = [(each.to or each.subject).encode() for each in imports if each.kind == "service"]
    return all(common_pattern(each, API.encode()) is None for each in local)
