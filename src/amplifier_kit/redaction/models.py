"""Keys of those who run models, and of what is built around them."""

from __future__ import annotations

from typing import Final

from amplifier_kit.redaction.rules import LEFT, RIGHT, TokenRule

__all__ = ["MODEL_RULES"]

MODEL_RULES: Final = (
    TokenRule(
        name="anthropic-key",
        starts=("sk-ant-",),
        pattern=r"sk-ant-[A-Za-z0-9_\-]{20,}+",
        shapes=("sk-ant-api03-<b93>AA", "sk-ant-admin01-<b93>AA", "sk-ant-oat01-<b90>", "sk-ant-ort01-<b90>"),
        refuses=("sk-ant-api03-...", "sk-ant-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    TokenRule(
        name="openai-key",
        starts=("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-", "sk-or-v1-", "sk-lf-"),
        pattern=LEFT + r"sk-(?:proj|svcacct|admin|None|or-v1|lf)-[A-Za-z0-9_\-]{20,}+",
        shapes=(
            "sk-proj-<b74>T3BlbkFJ<b74>",
            "sk-svcacct-<b60>",
            "sk-admin-<b58>",
            "sk-or-v1-<h64>",
            "sk-lf-<h8>-<h4>-<h4>-<h4>-<h12>",
        ),
        refuses=("sk-proj-your-key-here", "sk-proj-xxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ),
    TokenRule(
        name="model-key",
        starts=("sk-", "sk_"),
        pattern=LEFT + r"sk[\-_][A-Za-z0-9]{28,}+(?![\-_]?[A-Za-z0-9])",
        shapes=("sk-<w20>T3BlbkFJ<w20>", "sk-<h32>", "sk-<w48>", "sk_<h48>"),
        refuses=("task-12345678901234567890123456789012", "sk-spinner-fading-circle-with-long-name-12"),
        needs_digit=True,
    ),
    TokenRule(
        name="google-key",
        starts=("AIza",),
        pattern=LEFT + r"AIza[0-9A-Za-z_\-]{35}(?![0-9A-Za-z])",
        shapes=("AIza<b35>",),
        refuses=("AIzaShort", "AIza" + "X" * 35),
    ),
    TokenRule(
        name="huggingface-token",
        starts=("hf_", "api_org_"),
        pattern=LEFT + r"(?:hf|api_org)_[A-Za-z0-9]{30,}+(?!_)",
        shapes=("hf_<a34>", "api_org_<a34>"),
        refuses=("hf_hub_download", "hf_model_name_with_many_underscores_inside"),
    ),
    TokenRule(
        name="groq-key", starts=("gsk_",), pattern=r"gsk_[A-Za-z0-9]{40,}+", shapes=("gsk_<w52>",), refuses=("gsk_1",)
    ),
    TokenRule(
        name="xai-key",
        starts=("xai-",),
        pattern=LEFT + r"xai-[A-Za-z0-9]{60,}+",
        shapes=("xai-<w80>",),
        refuses=("xai-grok-4-fast-reasoning",),
    ),
    TokenRule(
        name="perplexity-key",
        starts=("pplx-",),
        pattern=LEFT + r"pplx-[A-Za-z0-9]{40,}+",
        shapes=("pplx-<w48>",),
        refuses=("pplx-7b-online",),
    ),
    TokenRule(
        name="replicate-token",
        starts=("r8_",),
        pattern=LEFT + r"r8_[A-Za-z0-9]{37,40}" + RIGHT,
        shapes=("r8_<w37>",),
        refuses=("r8_register",),
    ),
    TokenRule(
        name="nvidia-key",
        starts=("nvapi-",),
        pattern=r"nvapi-[A-Za-z0-9_\-]{50,}+",
        shapes=("nvapi-<b64>",),
        refuses=("nvapi-version",),
    ),
    TokenRule(
        name="fireworks-key",
        starts=("fw_",),
        pattern=LEFT + r"fw_[A-Za-z0-9]{22,}+(?!_)",
        shapes=("fw_<w24>",),
        refuses=("fw_version_of_the_controller",),
        needs_digit=True,
    ),
    TokenRule(
        name="together-key",
        starts=("tgp_v1_",),
        pattern=r"tgp_v1_[A-Za-z0-9_\-]{40,}+",
        shapes=("tgp_v1_<b43>",),
        refuses=("tgp_v1_",),
    ),
    TokenRule(
        name="cerebras-key",
        starts=("csk-",),
        pattern=LEFT + r"csk-[A-Za-z0-9]{40,}+",
        shapes=("csk-<l48>",),
        refuses=("csk-1",),
    ),
    TokenRule(
        name="anyscale-key",
        starts=("esecret_",),
        pattern=LEFT + r"esecret_[A-Za-z0-9]{20,}+",
        shapes=("esecret_<l26>",),
        refuses=("esecret_name",),
    ),
    TokenRule(
        name="jina-key", starts=("jina_",), pattern=LEFT + r"jina_[A-Za-z0-9]{50,}+", shapes=("jina_<h32><w28>",)
    ),
    TokenRule(
        name="tavily-key",
        starts=("tvly-",),
        pattern=LEFT + r"tvly-(?:dev-|prod-)?[A-Za-z0-9_\-]{24,}+",
        shapes=("tvly-<w32>", "tvly-dev-<w32>"),
        refuses=("tvly-client",),
    ),
    TokenRule(
        name="pinecone-key",
        starts=("pcsk_",),
        pattern=LEFT + r"pcsk_[A-Za-z0-9_]{50,}+",
        shapes=("pcsk_<w6>_<w63>",),
        refuses=("pcsk_id",),
    ),
    TokenRule(
        name="voyage-key",
        starts=("pa-", "al-"),
        pattern=LEFT + r"(?:pa|al)-[A-Za-z0-9_\-]{43}(?![A-Za-z0-9_\-])",
        shapes=("pa-<b43>",),
        refuses=("pa-rt-of-a-long-kebab-case-name-which-goes-on-on",),
        needs_digit=True,
    ),
    TokenRule(
        name="langsmith-key",
        starts=("lsv2_",),
        pattern=r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}",
        shapes=("lsv2_pt_<h32>_<h10>", "lsv2_sk_<h32>_<h10>"),
        refuses=("lsv2_pt_short",),
    ),
    TokenRule(
        name="e2b-key",
        starts=("e2b_",),
        pattern=LEFT + r"e2b_[0-9a-f]{40}" + RIGHT,
        shapes=("e2b_<h40>",),
        refuses=("e2b_sandbox",),
    ),
    TokenRule(
        name="firecrawl-key",
        starts=("fc-",),
        pattern=LEFT + r"fc-[0-9a-f]{32}" + RIGHT,
        shapes=("fc-<h32>",),
        refuses=("fc-cache", "fc-" + "0" * 32),
    ),
    TokenRule(
        name="brave-key",
        starts=("BSA",),
        pattern=LEFT + r"BSA[A-Za-z0-9_\-]{28}(?![A-Za-z0-9_\-])",
        shapes=("BSA<b28>",),
        refuses=("BSA-2021-0001",),
        needs_digit=True,
    ),
    TokenRule(
        name="wandb-key",
        starts=("wandb_v1_",),
        pattern=r"wandb_v1_[A-Za-z0-9_]{40,}+",
        shapes=("wandb_v1_<w76>",),
        refuses=("wandb_v1_schema",),
    ),
    TokenRule(
        name="modal-token",
        starts=("ak-", "as-"),
        pattern=LEFT + r"a[ks]-[A-Za-z0-9]{22}(?![A-Za-z0-9_\-])",
        shapes=("ak-<w22>", "as-<w22>"),
        refuses=("as-soon-as-possible-then",),
        needs_digit=True,
    ),
    TokenRule(
        name="posthog-key",
        starts=("phx_",),
        pattern=LEFT + r"phx_[A-Za-z0-9]{40,}+",
        shapes=("phx_<w43>",),
        refuses=("phx_router",),
    ),
    TokenRule(
        name="sourcegraph-token",
        starts=("sgp_",),
        pattern=LEFT + r"sgp_(?:(?:[0-9a-f]{16}|local)_)?[0-9a-f]{40}" + RIGHT,
        shapes=("sgp_<h16>_<h40>", "sgp_local_<h40>", "sgp_<h40>"),
        refuses=("sgp_local_x",),
    ),
)
