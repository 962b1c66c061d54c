"""Taking one entry out of a text in YAML by its lines, so that every comment around it stays where it is."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import yaml

__all__ = ["cut_entry"]


def cut_entry(text: str, key: Sequence[str | int]) -> str | None:
    """Return a text without an entry, and without the mappings that it leaves empty; `None` where lines do not do.

    Nothing is known of anchors: the caller checks what the result means.

    Args:
        text: sound YAML.
        key: names and indexes from the outside in.
    """
    entry = _entry(yaml.compose(text, Loader=yaml.CSafeLoader), key)
    if entry is None or entry.holder.flow_style:
        return None
    lines = text.splitlines(keepends=True)
    first = entry.name.start_mark
    before = lines[first.line][: first.column].strip()
    if before != ("-" if isinstance(entry.holder, yaml.SequenceNode) else ""):
        return None
    if len(entry.holder.value) > 1:
        left = []
    else:
        left = _nothing(entry.holder)
    return "".join([*lines[: first.line], *left, *lines[_last_line(entry.value) + 1 :]])


@attrs.frozen
class _Entry:
    """Its container, its key (in a list itself), and its value."""

    holder: yaml.CollectionNode
    name: yaml.Node
    value: yaml.Node


def _entry(root: yaml.Node | None, key: Sequence[str | int]) -> _Entry | None:
    """Return the entry, or the outermost mapping's that holds nothing else."""
    found: _Entry | None = None
    node = root
    for part in key:
        child = _child(node, part)
        if child is None:
            return None
        is_alone = (
            isinstance(child.holder, yaml.MappingNode) and len(child.holder.value) == 1
        )
        if found is None or not is_alone or isinstance(found.holder, yaml.SequenceNode):
            found = child
        node = child.value
    return found


def _child(node: yaml.Node | None, part: str | int) -> _Entry | None:
    if isinstance(node, yaml.MappingNode):
        return next(
            (
                _Entry(node, name, value)
                for name, value in node.value
                if name.value == part
            ),
            None,
        )
    if (
        isinstance(node, yaml.SequenceNode)
        and isinstance(part, int)
        and part < len(node.value)
    ):
        return _Entry(node, node.value[part], node.value[part])
    return None


def _nothing(holder: yaml.CollectionNode) -> list[str]:
    """Return the line that stands for an empty list, or for the mapping of a list's entry."""
    if isinstance(holder, yaml.MappingNode) and holder.start_mark.column == 0:
        return []
    if isinstance(holder, yaml.SequenceNode):
        brackets = "[]"
    else:
        brackets = "{}"
    return [f"{' ' * (holder.start_mark.column + 2)}{brackets}\n"]


def _last_line(node: yaml.Node) -> int:
    """Return the line on which a node's own text ends; comments behind it are not its own."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    end = node.end_mark
    if end.column:
        return end.line
    return max(node.start_mark.line, end.line - 1)
