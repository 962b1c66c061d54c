"""Which tool it is: the distribution that it came with, and what it says of itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Final

import attrs

from amplifier_kit.rules import RuledCall
from amplifier_kit.rules.permissions import PermissionScope
from amplifier_sdk.assessments import Assessment

__all__ = ["Distributions", "Keys", "ToolIdentity"]

_GROUP: Final = "amplifier.modules"


@attrs.define(eq=False)
class Distributions:
    """Which installed distribution brought a package of modules; each is looked up once."""

    _known: dict[str, tuple[str | None, str | None]] = attrs.field(factory=dict)

    def find(self, package: str) -> tuple[str | None, str | None]:
        """Return a distribution's name and version; `None` twice where that is not certain."""
        if package not in self._known:
            found = {
                (entry.dist.name, entry.dist.version)
                for entry in entry_points(group=_GROUP)
                if entry.dist is not None and entry.module.partition(".")[0] == package
            }
            # Two distributions of one package: nobody can say which code would run.
            if len(found) == 1:
                self._known[package] = found.pop()
            else:
                self._known[package] = (None, None)
        return self._known[package]


@attrs.frozen(kw_only=True)
class ToolIdentity:
    """A tool by where it came from; `distribution` and `version` are `None` for what no distribution brought.

    `definition` is a digest of its description and schema, which some tools get from elsewhere.
    """

    distribution: str | None
    version: str | None
    definition: str
    module: str

    @classmethod
    def of(cls, tool: object, distributions: Distributions) -> ToolIdentity:
        """Find out where a tool came from."""
        # A decorated function's own module, not the decorator's.
        source = getattr(tool, "function", tool)
        module = getattr(source, "__module__", None) or type(source).__module__
        distribution, version = distributions.find(str(module).partition(".")[0])
        return cls(
            distribution=distribution,
            version=version,
            definition=_definition(tool),
            module=str(module),
        )


@attrs.frozen(kw_only=True)
class Keys:
    """What permissions for a call are known by.

    Those are for this tool, of this distribution and version, confined as it is now. `call` is for exactly these
    arguments in this folder.
    """

    identity: ToolIdentity
    call: str
    _folder: str
    _source: str
    _confinement: tuple[str, ...]

    @classmethod
    def of(
        cls,
        call: RuledCall,
        tool: object,
        distributions: Distributions,
        assessment: Assessment,
    ) -> Keys:
        """Make the keys of a call.

        Args:
            call: the call.
            tool: the tool.
            distributions: finds where the tool came from.
            assessment: what the tool says of the call: where it works, and what keeps it inside.

        Raises:
            ValueError: the arguments are no JSON data.
        """
        identity, folder = ToolIdentity.of(tool, distributions), str(call.directory)
        parts = [
            identity.distribution,
            identity.version,
            identity.definition,
            folder,
            call.canonical,
        ]
        if assessment.directory is not None and assessment.directory != folder:
            parts.append(assessment.directory)
        # In a list of its own it is never taken for a folder.
        confinement = (assessment.confinement,) if assessment.confinement else ()
        call_key = _digest([*parts, list(confinement)] if confinement else parts)
        return cls(
            identity=identity,
            call=call_key,
            folder=folder,
            source=identity.module,
            confinement=confinement,
        )

    def of_kind(self, key: str, scope: PermissionScope) -> str:
        """Return what a permission for a kind of calls is known by.

        The tools of one module share it: what a kind is, is for the module to say.
        """
        folder = ""
        if scope != "everywhere":
            folder = self._folder
        identity = self.identity
        parts = [
            "kind",
            identity.distribution,
            identity.version,
            self._source,
            scope,
            folder,
            key,
        ]
        return _digest([*parts, *self._confinement])


def _definition(tool: object) -> str:
    schema = getattr(tool, "input_schema", None)
    plain = None
    if isinstance(schema, Mapping):
        plain = dict(schema)
    return _digest(
        [str(getattr(tool, "name", "")), str(getattr(tool, "description", "")), plain]
    )


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()
