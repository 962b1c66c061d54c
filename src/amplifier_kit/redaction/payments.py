"""Keys of shops, payments and deliveries."""

from __future__ import annotations

from typing import Final

from amplifier_kit.redaction.rules import LEFT, RIGHT, TokenRule

__all__ = ["PAYMENT_RULES"]

PAYMENT_RULES: Final = (
    TokenRule(
        name="stripe-key",
        starts=("sk_live_", "sk_test_", "rk_live_", "rk_test_"),
        pattern=r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}+",
        shapes=("sk_live_<w24>", "sk_test_<w99>", "rk_live_<w24>"),
        refuses=("pk_live_4f9Kx2LmQ8rT7vB1nC6yH3wZ", "sk_test_mode"),
    ),
    TokenRule(
        name="webhook-secret",
        starts=("whsec_",),
        pattern=r"whsec_[A-Za-z0-9+/]{24,}+={0,2}",
        shapes=("whsec_<w32>", "whsec_<s43>="),
        refuses=("whsec_x",),
    ),
    TokenRule(
        name="square-token",
        starts=("sq0atp-", "sq0csp-", "EAAA"),
        pattern=LEFT + r"(?:sq0atp-[A-Za-z0-9_\-]{22}|sq0csp-[A-Za-z0-9_\-]{43}|EAAA[A-Za-z0-9_\-]{60})"
        r"(?![A-Za-z0-9_\-+/=])",
        shapes=("sq0atp-<b22>", "sq0csp-<b43>", "EAAA<b60>"),
        refuses=("sq0idp-4f9Kx2LmQ8rT7vB1nC6yH3", "EAAA"),
    ),
    TokenRule(
        name="braintree-token",
        starts=("access_token$",),
        pattern=r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[0-9a-f]{32}",
        shapes=("access_token$production$<l16>$<h32>",),
        refuses=("access_token$x",),
    ),
    TokenRule(
        name="shopify-token",
        starts=("shpat_", "shpca_", "shppa_", "shpss_", "shptka_"),
        pattern=r"shp(?:at|ca|pa|ss|tka)_[0-9a-fA-F]{32}",
        shapes=("shpat_<h32>", "shpca_<h32>", "shppa_<h32>", "shpss_<h32>"),
        refuses=("shpat_x",),
    ),
    TokenRule(
        name="easypost-key",
        starts=("EZAK", "EZTK"),
        pattern=LEFT + r"EZ[AT]K[A-Za-z0-9]{54}" + RIGHT,
        shapes=("EZAK<w54>", "EZTK<w54>"),
        refuses=("EZAK",),
    ),
    TokenRule(
        name="flutterwave-key",
        starts=("FLWSECK",),
        pattern=r"FLWSECK(?:_TEST)?-[0-9a-zA-Z]{12,}+(?:-X)?",
        shapes=("FLWSECK_TEST-<h32>-X", "FLWSECK-<h32>-X"),
        refuses=("FLWSECK-x",),
    ),
    TokenRule(
        name="duffel-token",
        starts=("duffel_",),
        pattern=r"duffel_(?:test|live)_[A-Za-z0-9_=\-]{40,}+",
        shapes=("duffel_test_<b43>", "duffel_live_<b43>"),
        refuses=("duffel_test_x",),
    ),
    TokenRule(
        name="shippo-token",
        starts=("shippo_",),
        pattern=r"shippo_(?:live|test)_[0-9a-f]{40}",
        shapes=("shippo_live_<h40>", "shippo_test_<h40>"),
        refuses=("shippo_test_x",),
    ),
    TokenRule(
        name="plaid-token",
        starts=("access-sandbox-", "access-production-", "access-development-"),
        pattern=r"access-(?:sandbox|production|development)-"
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        shapes=("access-sandbox-<h8>-<h4>-<h4>-<h4>-<h12>",),
        refuses=("access-sandbox-x",),
    ),
    TokenRule(
        name="lob-key",
        starts=("live_", "test_"),
        pattern=LEFT + r"(?:live|test)_[0-9a-f]{35}" + RIGHT,
        shapes=("live_<h35>", "test_<h35>"),
        refuses=("test_that_it_works",),
    ),
)
