"""Keys of other services."""

from __future__ import annotations

from typing import Final

from amplifier_kit.redaction.rules import LEFT, RIGHT, TokenRule

__all__ = ["SERVICE_RULES"]

SERVICE_RULES: Final = (
    TokenRule(
        name="adafruit-key",
        starts=("aio_",),
        pattern=LEFT + r"aio_[A-Za-z0-9]{28}" + RIGHT,
        shapes=("aio_<w28>",),
        refuses=("aio_read_many_at_once_and_close",),
        needs_digit=True,
    ),
    TokenRule(
        name="authress-key",
        starts=("authress_", "scauth_", "ext_", "sc_"),
        pattern=LEFT + r"(?:authress|scauth|ext|sc)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_\-][a-z0-9\-]{10,32}"
        r"\.[A-Za-z0-9+/_=\-]{30,}+",
        shapes=("sc_<l12>.<l5>.acc_<l16>.<b60>", "authress_<l12>.<l4>.acc-<l16>.<b40>"),
        refuses=("ext_modules.items.acc_total", "sc_config.name"),
    ),
    TokenRule(
        name="settlemint-token",
        starts=("sm_aat_", "sm_pat_", "sm_sat_"),
        pattern=LEFT + r"sm_[aps]at_[A-Za-z0-9]{16}" + RIGHT,
        shapes=("sm_pat_<w16>", "sm_aat_<w16>", "sm_sat_<w16>"),
        refuses=("sm_pat_x", "sm_pat_names_of_all"),
    ),
    TokenRule(
        name="facebook-token",
        starts=("EAA",),
        pattern=LEFT + r"EAA[A-Za-z0-9]{90,}+(?![+/=])",
        shapes=("EAAB<w160>",),
        refuses=("EAAccess",),
    ),
    TokenRule(
        name="twitter-bearer",
        starts=("A" * 20,),
        pattern=r"(?<![A-Za-z0-9+/=])A{20,26}[A-Za-z0-9%]{60,}+(?![+/=])",
        shapes=("AAAAAAAAAAAAAAAAAAAAAA<w34>%3D<w44>",),
        refuses=("A" * 100,),
        needs_digit=True,
    ),
    TokenRule(
        name="linear-key",
        starts=("lin_api_", "lin_oauth_"),
        pattern=r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}+",
        shapes=("lin_api_<w40>", "lin_oauth_<h64>"),
        refuses=("lin_api_x",),
    ),
    TokenRule(
        name="notion-token",
        starts=("ntn_", "secret_"),
        pattern=LEFT + r"(?:ntn_[A-Za-z0-9]{40,}+|secret_[A-Za-z0-9]{43}" + RIGHT + ")",
        shapes=("ntn_<d11><w35>", "secret_<w43>"),
        refuses=("secret_name", "secret_key_of_the_session"),
    ),
    TokenRule(
        name="figma-token",
        starts=("figd_", "figo_"),
        pattern=LEFT + r"fig[do]_[A-Za-z0-9_\-]{38,}+",
        shapes=("figd_<b40>",),
        refuses=("figd_x",),
    ),
    TokenRule(
        name="airtable-token",
        starts=("pat",),
        pattern=LEFT + r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}",
        shapes=("pat<w14>.<h64>",),
        refuses=("patternmatching17.x",),
    ),
    TokenRule(
        name="asana-token",
        starts=("0/", "1/", "2/"),
        pattern=r"(?<![A-Za-z0-9/.])[0-2]/\d{10,20}(?:/\d{10,20})?:[0-9a-f]{32}" + RIGHT,
        shapes=("1/<d16>:<h32>", "2/<d16>/<d16>:<h32>"),
        refuses=("1/2",),
    ),
    TokenRule(
        name="dropbox-token",
        starts=("sl.",),
        pattern=LEFT + r"sl\.(?:u\.)?[A-Za-z0-9_\-]{100,}+",
        shapes=("sl.<b135>", "sl.u.<b200>"),
        refuses=("sl.wikipedia.org",),
    ),
    TokenRule(
        name="frameio-token",
        starts=("fio-u-",),
        pattern=r"fio-u-[A-Za-z0-9_=\-]{60,}+",
        shapes=("fio-u-<b64>",),
        refuses=("fio-u-x",),
    ),
    TokenRule(
        name="typeform-token",
        starts=("tfp_",),
        pattern=LEFT + r"tfp_[A-Za-z0-9_.=\-]{40,}+",
        shapes=("tfp_<b44>_<b14>",),
        refuses=("tfp_layers",),
    ),
    TokenRule(
        name="mapbox-token",
        starts=("sk.eyJ",),
        pattern=LEFT + r"sk\.eyJ[A-Za-z0-9_\-]{20,}+\.[A-Za-z0-9_\-]{20,}+",
        shapes=("sk.eyJ<w80>.<b22>",),
        refuses=("pk.eyJ1Ijoi4f9Kx2LmQ8rT7vB1nC6.4f9Kx2LmQ8rT7vB1nC6yH3",),
    ),
    TokenRule(
        name="contentful-token",
        starts=("CFPAT-",),
        pattern=r"CFPAT-[A-Za-z0-9_\-]{43}",
        shapes=("CFPAT-<b43>",),
        refuses=("CFPAT-x",),
    ),
    TokenRule(
        name="hubspot-token",
        starts=("pat-na", "pat-eu"),
        pattern=LEFT + r"pat-(?:na|eu)\d-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        shapes=("pat-na1-<h8>-<h4>-<h4>-<h4>-<h12>", "pat-eu1-<h8>-<h4>-<h4>-<h4>-<h12>"),
        refuses=("pat-na1-x",),
    ),
    TokenRule(
        name="zoho-token",
        starts=("1000.",),
        pattern=r"(?<![0-9A-Za-z.])1000\.[0-9a-f]{32}\.[0-9a-f]{32}",
        shapes=("1000.<h32>.<h32>",),
        refuses=("1000.50",),
    ),
    TokenRule(
        name="adobe-secret",
        starts=("p8e-", "p8-"),
        pattern=LEFT + r"p8e?-[A-Za-z0-9_\-]{32}(?![A-Za-z0-9_\-])",
        shapes=("p8e-<b32>",),
        refuses=("p8e-x",),
    ),
    TokenRule(
        name="encoded-private-key",
        starts=("LS0tLS1CRUdJTi",),
        pattern=r"LS0tLS1CRUdJTi(?!BDRVJU|BQVUJM|BQR1AgUFVC|BQR1AgU0lH|BORVcgQ0VS)[A-Za-z0-9+/]{40,}+={0,2}",
        shapes=("LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0VZ<s200>", "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt<s200>="),
        refuses=("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURkekNDQWw4Q0NBZ0lFQWdBQQ",),
    ),
    TokenRule(
        name="json-web-token",
        starts=("eyJ",),
        pattern=r"eyJ(?:(?<![A-Za-z0-9_\-]eyJ)|(?<=\\[nrt]eyJ)|(?<=%[0-9A-F]{2}eyJ))"
        r"[A-Za-z0-9_\-]{8,}+\.eyJ[A-Za-z0-9_\-]{8,}+\.[A-Za-z0-9_\-]{6,}+",
        shapes=("eyJhbGciOiJIUzI1NiJ9.eyJ<b60>.<b43>", "eyJ<b90>.eyJ<b300>.<b342>"),
        refuses=("eyJhbGciOiJIUzI1NiJ9", "eyJ.eyJ.x"),
    ),
    TokenRule(
        name="salesforce-token",
        starts=("00D",),
        pattern=LEFT + r"00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{40,}+",
        shapes=("00D<w12>!<w96>",),
        refuses=("00D!",),
    ),
)
