"""Tokens and addresses of services that send messages."""

from __future__ import annotations

from typing import Final

from amplifier_kit.redaction.rules import LEFT, RIGHT, TokenRule

__all__ = ["MESSAGING_RULES"]

MESSAGING_RULES: Final = (
    TokenRule(
        name="slack-token",
        starts=("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxe-", "xoxs-", "xoxc-", "xoxd-", "xoxo-", "xoxe.xox", "xapp-"),
        pattern=r"(?:xox[abprescdo]-|xoxe\.xox[bp]-|xapp-)[A-Za-z0-9%\-]{10,}+",
        shapes=(
            "xoxb-<d12>-<d13>-<w24>",
            "xoxp-<d12>-<d12>-<d13>-<h32>",
            "xoxe.xoxp-1-<w166>",
            "xapp-1-A<u10>-<d13>-<h64>",
        ),
        refuses=("xoxb-your-token", "xoxb-xxxxxxxxxxxx"),
        needs_digit=True,
    ),
    TokenRule(
        name="slack-webhook",
        starts=("hooks.slack.com/",),
        pattern=r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_]{20,}+)",
        shapes=("hooks.slack.com/services/T<u10>/B<u10>/<w24>",),
        refuses=("hooks.slack.com/services/",),
    ),
    TokenRule(
        name="discord-token",
        starts=(".",),
        pattern=r"(?<![A-Za-z0-9_.\-])[MNO][A-Za-z0-9_\-]{22,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,40}"
        r"(?![A-Za-z0-9_.(\-])",
        shapes=("MT<w22>.<w6>.<w27>", "OT<w24>.G<w5>.<w38>"),
        refuses=("NotificationsConfiguration.parent.children_of_the_whole_tree",),
        scan=r"\.(?<=[A-Za-z0-9_\-]{23}\.)[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27}",
        heads=(23, 24, 25, 26, 27, 28),
        needs_digit=True,
    ),
    TokenRule(
        name="discord-webhook",
        starts=("/api/webhooks/",),
        pattern=r"/api/webhooks/\d{16,20}/([A-Za-z0-9_\-]{60,}+)",
        shapes=("discord.com/api/webhooks/<d18>/<b68>",),
        refuses=("discord.com/api/webhooks/123/x",),
    ),
    TokenRule(
        name="telegram-token",
        starts=(":AA",),
        pattern=r"(?:(?<![A-Za-z0-9])|(?<=/bot))\d{8,10}:AA[A-Za-z0-9_\-]{33}(?![A-Za-z0-9_\-])",
        shapes=("<d9>:AA<b33>", "<d10>:AA<b33>"),
        refuses=("12:AABB", "1234567890:AAAA"),
        scan=r":AA(?<=\d{8}:AA)[A-Za-z0-9_\-]{33}",
        heads=(10, 9, 8),
    ),
    TokenRule(
        name="twilio-key",
        starts=("SK",),
        pattern=LEFT + r"SK[0-9a-f]{32}" + RIGHT,
        shapes=("SK<h32>",),
        refuses=("SKIPPED", "SK" + "0" * 32),
    ),
    TokenRule(
        name="sendgrid-key",
        starts=("SG.",),
        pattern=LEFT + r"SG\.[A-Za-z0-9_\-]{20,24}\.[A-Za-z0-9_\-]{39,50}",
        shapes=("SG.<b22>.<b43>",),
        refuses=("SG.com",),
    ),
    TokenRule(
        name="mailgun-key",
        starts=("key-", "pubkey-"),
        pattern=LEFT + r"(?:pub)?key-[0-9a-f]{32}" + RIGHT,
        shapes=("key-<h32>",),
        refuses=("key-value", "key-" + "a" * 32),
    ),
    TokenRule(
        name="mailchimp-key",
        starts=("-us",),
        pattern=LEFT + r"[0-9a-f]{32}-us\d{1,2}" + RIGHT,
        shapes=("<h32>-us7", "<h32>-us21"),
        refuses=("en-us", "d41d8cd98f00b204e9800998ecf8427e-usb"),
        scan=r"-us(?<=[0-9a-f]{32}-us)\d",
        heads=(32,),
    ),
    TokenRule(
        name="brevo-key",
        starts=("xkeysib-", "xsmtpsib-"),
        pattern=r"x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}",
        shapes=("xkeysib-<h64>-<w16>",),
        refuses=("xkeysib-x",),
    ),
    TokenRule(
        name="resend-key",
        starts=("re_",),
        pattern=LEFT + r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}" + RIGHT,
        shapes=("re_<w8>_<w24>",),
        refuses=("re_compiled_pattern",),
        needs_digit=True,
    ),
    TokenRule(
        name="mandrill-key",
        starts=("md-",),
        pattern=LEFT + r"md-[A-Za-z0-9_\-]{22}(?![A-Za-z0-9_\-])",
        shapes=("md-<b22>",),
        refuses=("md-button", "md-outlined-text-field-label"),
        needs_digit=True,
    ),
    TokenRule(
        name="incoming-webhook",
        starts=("/hooks/", "/IncomingWebhook/"),
        pattern=r"/(?:hooks(?:/catch/\d{4,12})?/([A-Za-z0-9]{7,64})(?![A-Za-z0-9])|IncomingWebhook/([0-9a-f]{32}/[0-9a-f\-]{36}))",
        shapes=("/hooks/<l26>", "/hooks/catch/<d7>/<l7>", "/IncomingWebhook/<h32>/<h8>-<h4>-<h4>-<h4>-<h12>"),
        refuses=("/hooks/useToggle", ".git/hooks/pre-commit"),
        needs_digit=True,
    ),
)
