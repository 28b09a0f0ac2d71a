"""Who stands for an audit or a certificate, as its sentences say it."""

from __future__ import annotations

import json

from privet.auditing.signatures import check_signature
from privet.core.errors import PrivetError
from privet.core.key_text import fingerprint
from privet.evidence.certificate.values import Certification
from privet.evidence.certified_sentences import changed, claimed, signed
from privet.evidence.figures import Audit


def said_by(document: Audit | Certification, who: str) -> str:
    """By whom it is said: by `who` where nobody signed it, else by the signer, whose signature is
    checked.

    >>> said_by(Audit({}, {}, "quick", (), (), 0.0), "the owner")
    'claimed by the owner, checked by nobody else'
    """
    if document.signature is None:
        return claimed(who)
    try:
        signature, right = check_signature(json.loads(document.to_json()))
    except PrivetError:  # without PyNaCl no signature can be checked
        return claimed(who)
    if signature is None or not right:
        return changed()
    return signed(signature.auditor, fingerprint(signature.key))
