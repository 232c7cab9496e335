"""Verification of requests to webhooks (Standard Webhooks 1.0)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
import typing as t
from email.message import Message

from ._generated.models import WebhookEvent
from .errors import WebhookVerificationError
from .model import build


def verify_webhook(
    body: t.Union[str, bytes],
    headers: t.Union[t.Mapping[str, str], Message],
    secret: str,
    *,
    tolerance_seconds: float = 300,
) -> WebhookEvent:
    """
    Verifies a request to a webhook and returns its event. `body` must be the received text or bytes: JSON that was parsed and
    written again may differ. An event may arrive more than once, each time with the same `webhook-id`. Raises
    `WebhookVerificationError` if it was not signed with `secret` within the last `tolerance_seconds`.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    given_id, timestamp, signatures = (
        _header(lower, name) for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
    )
    if not re.fullmatch(r"[0-9]{1,15}", timestamp):
        raise WebhookVerificationError("webhook-timestamp must be a number of seconds.")
    if abs(time.time() - int(timestamp)) > tolerance_seconds:
        raise WebhookVerificationError("The timestamp of the request is too old or in the future. Check the clock of this machine.")
    content = body.encode() if isinstance(body, str) else bytes(body)
    signed = f"{given_id}.{timestamp}.".encode() + content
    expected = hmac.new(_signing_key(secret), signed, hashlib.sha256).digest()
    # Every signature is compared, in constant time.
    given = [one[3:] for one in signatures.split(" ") if one.startswith("v1,")]
    matches = [hmac.compare_digest(expected, _bytes_of(one) or b"") for one in given]
    if not any(matches):
        raise WebhookVerificationError("No signature matches the secret.")
    return t.cast(WebhookEvent, build(WebhookEvent, json.loads(content)))


def _signing_key(secret: str) -> bytes:
    """The signing key: the decoded bytes of `whsec_` and base64, or the bytes of any other text."""
    encoded = re.fullmatch(r"whsec_([A-Za-z0-9+/]+={0,2})", secret)
    decoded = _bytes_of(encoded.group(1)) if encoded else None
    return secret.encode() if decoded is None else decoded


def _header(headers: t.Mapping[str, str], name: str) -> str:
    value = headers.get(name)
    if not isinstance(value, str) or value == "":
        raise WebhookVerificationError(f"{name} is missing.")
    return value


def _bytes_of(text: str) -> t.Optional[bytes]:
    """Decodes base64; None if it is invalid."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
