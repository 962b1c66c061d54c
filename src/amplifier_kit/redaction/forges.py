"""Tokens of code forges, package registries and build services."""

from __future__ import annotations

from typing import Final

from amplifier_kit.redaction.rules import LEFT, RIGHT, TokenRule

__all__ = ["FORGE_RULES"]

FORGE_RULES: Final = (
    TokenRule(
        name="github-token",
        starts=("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        pattern=r"gh[pousr]_[A-Za-z0-9]{36,}+",
        shapes=("ghp_<w36>", "gho_<w36>", "ghu_<w36>", "ghs_<w36>", "ghr_<w76>"),
        refuses=("ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "ghs_is_short"),
    ),
    TokenRule(
        name="github-fine-grained-token",
        starts=("github_pat_",),
        pattern=r"github_pat_[A-Za-z0-9_]{30,}+",
        shapes=("github_pat_<w22>_<w59>",),
        refuses=("github_pat_token",),
    ),
    TokenRule(
        name="gitlab-token",
        starts=("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-", "glsoat-"),
        pattern=r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat)-[A-Za-z0-9_\-.]{20,}+",
        shapes=("glpat-<b20>", "gldt-<b20>", "glrt-<b20>", "glptt-<h40>", "glpat-<b27>.01.<l9>"),
        refuses=("glpat-your-token",),
    ),
    TokenRule(
        name="gitlab-runner-token",
        starts=("GR1348941",),
        pattern=r"GR1348941[A-Za-z0-9_\-]{20,}+",
        shapes=("GR1348941<b20>",),
        refuses=("GR1348941",),
    ),
    TokenRule(
        name="bitbucket-token",
        starts=("ATBB", "ATCTT3", "ATATT3"),
        pattern=LEFT + r"(?:ATBB[A-Za-z0-9]{32}" + RIGHT + r"|AT(?:CT|AT)T3[A-Za-z0-9_\-=]{50,}+)",
        shapes=("ATBB<w32>", "ATCTT3xFfGN0<b171>=<u8>", "ATATT3xFfGF0<b171>=<u8>"),
        refuses=("ATBBatch",),
    ),
    TokenRule(
        name="npm-token",
        starts=("npm_",),
        pattern=LEFT + r"npm_[A-Za-z0-9]{36}" + RIGHT,
        shapes=("npm_<w36>",),
        refuses=("npm_config_registry", "npm_lifecycle_event"),
    ),
    TokenRule(
        name="pypi-token",
        starts=("pypi-AgE",),
        pattern=r"pypi-AgE[A-Za-z0-9_\-]{50,}+",
        shapes=("pypi-AgEIcHlwaS5vcmc<b90>", "pypi-AgENdGVzdC5weXBpLm9yZw<b90>"),
        refuses=("pypi-AgEnt",),
    ),
    TokenRule(
        name="rubygems-key",
        starts=("rubygems_",),
        pattern=r"rubygems_[0-9a-f]{48}",
        shapes=("rubygems_<h48>",),
        refuses=("rubygems_api_key",),
    ),
    TokenRule(
        name="crates-token",
        starts=("cio",),
        pattern=LEFT + r"cio[A-Za-z0-9]{32}" + RIGHT,
        shapes=("cio<w32>",),
        refuses=("ciocolata",),
        needs_digit=True,
    ),
    TokenRule(
        name="nuget-key",
        starts=("oy2",),
        pattern=LEFT + r"oy2[a-z0-9]{43}" + RIGHT,
        shapes=("oy2<l43>",),
        refuses=("oy2024",),
    ),
    TokenRule(
        name="clojars-token",
        starts=("CLOJARS_",),
        pattern=r"CLOJARS_[A-Za-z0-9]{50,}+",
        shapes=("CLOJARS_<l60>",),
        refuses=("CLOJARS_PASSWORD",),
    ),
    TokenRule(
        name="docker-token",
        starts=("dckr_pat_", "dckr_oat_"),
        pattern=r"dckr_[po]at_[A-Za-z0-9_\-]{27,}+",
        shapes=("dckr_pat_<b27>", "dckr_oat_<b32>"),
        refuses=("dckr_pat_x",),
    ),
    TokenRule(
        name="jfrog-key",
        starts=("AKCp", "cmVmd"),
        pattern=LEFT + r"(?:AKCp[A-Za-z0-9]{60,}+|cmVmd[A-Za-z0-9]{59}" + RIGHT + ")",
        shapes=("AKCp<w69>", "cmVmd<w59>"),
        refuses=("AKCplus",),
    ),
    TokenRule(
        name="sonar-token",
        starts=("sqp_", "squ_", "sqa_"),
        pattern=LEFT + r"sq[pua]_[0-9a-f]{40}" + RIGHT,
        shapes=("sqp_<h40>", "squ_<h40>", "sqa_<h40>"),
        refuses=("sqa_session",),
    ),
    TokenRule(
        name="circleci-token",
        starts=("CCIPAT_", "CCIPRJ_"),
        pattern=r"CCIP(?:AT|RJ)_[A-Za-z0-9]{20,}_[0-9a-f]{40}",
        shapes=("CCIPAT_<w22>_<h40>", "CCIPRJ_<w22>_<h40>"),
        refuses=("CCIPAT_NAME",),
    ),
    TokenRule(
        name="buildkite-token",
        starts=("bkua_",),
        pattern=r"bkua_[0-9a-f]{40}",
        shapes=("bkua_<h40>",),
        refuses=("bkua_token",),
    ),
    TokenRule(
        name="snyk-token",
        starts=("snyk_",),
        pattern=r"snyk_(?:uat|sat)\.[0-9a-f]{8}\.[A-Za-z0-9_\-.]{20,}+",
        shapes=("snyk_uat.<h8>.<b60>",),
        refuses=("snyk_uat.x",),
    ),
    TokenRule(
        name="sentry-token",
        starts=("sntrys_", "sntryu_"),
        pattern=r"sntry(?:s_eyJ[A-Za-z0-9_+/=\-]{40,}+|u_[0-9a-f]{64})",
        shapes=("sntrys_eyJ<w80>_<b43>", "sntryu_<h64>"),
        refuses=("sntrys_eyJ",),
    ),
    TokenRule(
        name="postman-key",
        starts=("PMAK-",),
        pattern=r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}",
        shapes=("PMAK-<h24>-<h34>",),
        refuses=("PMAK-1",),
    ),
    TokenRule(
        name="readme-key",
        starts=("rdme_",),
        pattern=r"rdme_[a-z0-9]{60,}+",
        shapes=("rdme_<l70>",),
        refuses=("rdme_x",),
    ),
)
