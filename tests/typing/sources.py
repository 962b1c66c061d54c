"""What is a module source and a resolver of them. Checked by mypy and pyright, never run."""

from __future__ import annotations

from pathlib import Path

from amplifier_sdk import ModuleSource, ModuleSourceResolver


class Source:
    def resolve(self) -> Path:
        return Path()


class ByProfile:
    """As the module source protocol writes it."""

    def resolve(self, module_id: str, profile_hint: object = None) -> Source:
        return Source()


class BySource:
    """With both names of the hint."""

    def resolve(self, module_id: str, source_hint: object = None, profile_hint: object = None) -> ModuleSource:
        return Source()


class WithoutHint:
    def resolve(self, module_id: str) -> ModuleSource:
        return Source()


class TextSource:
    def resolve(self) -> str:
        return "."


source: ModuleSource = Source()
resolvers: list[ModuleSourceResolver] = [ByProfile(), BySource()]

strict: ModuleSourceResolver = WithoutHint()  # error: assignment
no_path: ModuleSource = TextSource()  # error: assignment
