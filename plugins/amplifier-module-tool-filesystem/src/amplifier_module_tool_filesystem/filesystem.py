"""The tools: what a model calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import anyio
from anyio import to_thread

from amplifier_kit.files.session_folders import working_directory
from amplifier_module_tool_filesystem.config import FilesystemConfig
from amplifier_module_tool_filesystem.directory_listing import find_files, list_entries
from amplifier_module_tool_filesystem.edit import Edit, edit_text
from amplifier_module_tool_filesystem.move import delete_path, move_path
from amplifier_module_tool_filesystem.previews import (
    preview_deletion,
    preview_edit,
    preview_move,
    preview_write,
)
from amplifier_module_tool_filesystem.read import FilePageReader
from amplifier_module_tool_filesystem.search import FileSearch, Query
from amplifier_module_tool_filesystem.walk import Budget
from amplifier_module_tool_filesystem.workspace import open_workspace
from amplifier_module_tool_filesystem.write import write_text
from amplifier_sdk.assessments import EDITS, Assessment, Coverage
from amplifier_sdk.capabilities import TYPED_CALLS
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.decorators import toolset
from amplifier_sdk.errors import ToolError
from amplifier_sdk.events import (
    ARTIFACT_READ,
    ARTIFACT_WRITE,
    ArtifactRead,
    ArtifactWrite,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import ToolResult
from amplifier_sdk.tools import tool

__all__ = ["Filesystem"]


@toolset
class Filesystem:
    """Files inside the directories that the configuration allows.

    All file work is done in worker threads, so that a slow disk never holds the event loop; a long read or
    search stops soon after its call is cancelled, a write that has begun is finished.
    """

    def __init__(self, config: FilesystemConfig, coordinator: Coordinator) -> None:
        self._config = config
        self._hooks = coordinator.hooks
        self._workspace = open_workspace(
            config,
            working_directory(coordinator),
            is_typed=lambda: bool(coordinator.get_capability(TYPED_CALLS)),
        )
        # Two edits of one file in one batch of calls would otherwise each drop the other's change.
        self._writing = anyio.Lock()

    @tool(effects=("read",))
    async def read_file(
        self, file_path: str, offset: int = 1, limit: int = 2000, raw: bool = False
    ) -> JSONObject | ToolResult:
        """Read lines of a text file, each with its number and a tab before it.

        When `more` is true in the result, lines follow: continue with offset = offset + lines_read. An image is
        shown as such; of a Jupyter notebook the cells and their outputs are shown.

        Args:
            file_path: relative to the working directory, or absolute.
            offset: the first line to read; the file's first is 1.
            limit: how many lines to read at most.
            raw: show the text of the file itself, also of a notebook, whose text is JSON.
        """
        reader = FilePageReader(
            self._workspace, self._config, file_path, offset, limit, raw
        )
        found = await to_thread.run_sync(reader.read)
        await self._hooks.emit(
            ARTIFACT_READ, ArtifactRead(path=found.path, bytes=found.bytes)
        )
        return found.to_result()

    @tool(effects=("write",))
    async def write_file(self, file_path: str, content: str) -> JSONObject:
        """Write a whole text file, new or over an existing one, exactly as given, in UTF-8.

        Missing directories are created. A file that exists must have been read before. To change a part of a
        file use edit_file.

        Args:
            file_path: relative to the working directory, or absolute.
            content: the whole content of the file.
        """
        async with self._writing:
            written = await to_thread.run_sync(
                partial(write_text, self._workspace, self._config, file_path, content)
            )
        await self._report_written(written.path, written.bytes)
        result: JSONObject = {
            "file_path": written.path,
            "bytes": written.bytes,
            "created": written.created,
        }
        if written.diff:
            return {**result, "diff": written.diff}
        return result

    @write_file.assessor
    async def _assess_write(self, file_path: str, content: str) -> Assessment:
        """Show what a file becomes."""
        return await _shown(
            partial(preview_write, self._workspace, self._config, file_path, content),
            _EDITS,
        )

    @tool(effects=("write",))
    async def edit_file(
        self,
        file_path: str,
        old_string: str | None = None,
        new_string: str | None = None,
        replace_all: bool = False,
        edits: list[Edit] | None = None,
    ) -> JSONObject:
        """Replace exact texts in a file by others; everything else of the file stays as it is.

        Read the file first. old_string must be in the file once, unless replace_all is set; take in lines
        around it to make it unique. Leave out the line numbers that read_file shows. For several changes of one
        file give edits instead: they are made one after the other, all of them or none.

        Args:
            file_path: relative to the working directory, or absolute.
            old_string: the text to replace, with its exact white space.
            new_string: the new text.
            replace_all: replace every occurrence.
            edits: several replacements, in place of the three arguments above.
        """
        wanted = _edits(old_string, new_string, replace_all, edits)
        async with self._writing:
            edited = await to_thread.run_sync(
                partial(edit_text, self._workspace, self._config, file_path, wanted)
            )
        await self._report_written(edited.path, edited.bytes)
        return {
            "file_path": edited.path,
            "replacements_made": edited.replacements,
            "bytes_written": edited.bytes,
            "diff": edited.diff,
        }

    @edit_file.assessor
    async def _assess_edit(
        self,
        file_path: str,
        old_string: str | None = None,
        new_string: str | None = None,
        replace_all: bool = False,
        edits: list[Edit] | None = None,
    ) -> Assessment:
        """Show what an edit changes."""
        wanted = _edits(old_string, new_string, replace_all, edits)
        return await _shown(
            partial(preview_edit, self._workspace, self._config, file_path, wanted),
            _EDITS,
        )

    @tool(effects=("write",))
    async def move(self, source: str, destination: str) -> JSONObject:
        """Move or rename a file or directory; a link is moved itself, not what it leads to.

        Missing directories above the destination are created. Nothing is written over.

        Args:
            source: what to move, relative to the working directory, or absolute.
            destination: its whole new path, which must be free.
        """
        async with self._writing:
            moved = await to_thread.run_sync(
                partial(move_path, self._workspace, source, destination)
            )
        await self._report_written(moved.source, 0)
        await self._report_written(moved.destination, moved.bytes)
        return {
            "source": moved.source,
            "destination": moved.destination,
            "type": moved.kind,
        }

    @move.assessor
    async def _assess_move(self, source: str, destination: str) -> Assessment:
        """Show what is moved."""
        return await _shown(
            partial(preview_move, self._workspace, source, destination), _EDITS
        )

    @tool(effects=("write",))
    async def delete(self, path: str, recursive: bool = False) -> JSONObject:
        """Delete a file or directory for good; of a link the link itself.

        When nothing was there, `deleted` is false in the result.

        Args:
            path: relative to the working directory, or absolute.
            recursive: delete a directory with all that is in it.
        """
        async with self._writing:
            # Its time begins here: to wait for another write is none of it.
            work = partial(
                delete_path,
                self._workspace,
                path,
                Budget.of(self._config),
                recursive=recursive,
            )
            deleted = await to_thread.run_sync(work)
        if deleted.missing is not None:
            return {"path": deleted.path, "deleted": False, "warning": deleted.missing}
        await self._report_written(deleted.path, 0)
        return {
            "path": deleted.path,
            "deleted": True,
            "type": deleted.kind,
            "entries": deleted.entries,
        }

    @delete.assessor
    async def _assess_delete(self, path: str, recursive: bool = False) -> Assessment:
        """Show what is deleted."""
        budget = Budget.of(self._config)
        return await _shown(
            partial(
                preview_deletion, self._workspace, path, budget, recursive=recursive
            ),
            _DELETIONS,
        )

    @tool(effects=("read",))
    async def list_directory(self, path: str = ".", depth: int = 1) -> JSONObject:
        """List what is in a directory: names, types, and the sizes of files in bytes, in order.

        `omitted` in the result counts the entries left out because the list was full.

        Args:
            path: relative to the working directory, or absolute.
            depth: how many levels of directories to list; links are not followed.
        """
        return await to_thread.run_sync(
            partial(list_entries, self._workspace, self._config, path, depth)
        )

    @tool(effects=("read",))
    async def glob(
        self, pattern: str, path: str = ".", include_ignored: bool = False
    ) -> JSONObject:
        """List the files whose path matches a pattern, in order.

        `*`, `?` and `[abc]` match within a name, `**` any number of directories, `{a,b}` either. Hidden files
        and directories match only a part of the pattern that begins with a dot.

        Args:
            pattern: relative to `path`, such as `**/*.py`.
            path: the directory to search, relative to the working directory, or absolute.
            include_ignored: list also what .gitignore and .ignore files name.
        """
        return await to_thread.run_sync(
            partial(
                find_files,
                self._workspace,
                self._config,
                pattern,
                path,
                with_ignored=include_ignored,
            )
        )

    @tool(effects=("read",))
    async def grep(
        self,
        pattern: str,
        path: str = ".",
        glob: str | None = None,
        ignore_case: bool = False,
        context: int = 0,
        max_results: int | None = None,
        include_ignored: bool = False,
    ) -> JSONObject:
        """Search the lines of text files for a regular expression (Python syntax).

        Binary, hidden and very large files are skipped, links are not followed.

        Args:
            pattern: the regular expression; it is matched against single lines.
            path: a file, or a directory to search with all below it.
            glob: search only files that match, such as `*.py` at any depth, or `src/**/*.py`.
            ignore_case: whether upper and lower case are the same.
            context: how many lines to show before and after each match.
            max_results: stop after this many matches.
            include_ignored: search also what .gitignore and .ignore files name.
        """
        query = Query(
            pattern=pattern,
            path=path,
            glob=glob,
            ignore_case=ignore_case,
            context=context,
            max_results=max_results,
            with_ignored=include_ignored,
        )
        return await to_thread.run_sync(
            FileSearch(self._workspace, self._config, query).run
        )

    async def _report_written(self, path: str, size: int) -> None:
        await self._hooks.emit(ARTIFACT_WRITE, ArtifactWrite(path=path, bytes=size))


def _edits(
    old: str | None, new: str | None, replace_all: bool, edits: list[Edit] | None
) -> list[Edit]:
    """Return what is to be edited, given in either form."""
    if edits is not None:
        # which of the two is meant cannot be known
        if old is not None or new is not None or replace_all:
            raise ToolError(
                "give either edits, or old_string and new_string with replace_all; not both"
            )
        return edits
    if old is None or new is None:
        raise ToolError("old_string and new_string are missing; give both, or edits")
    return [Edit(old_string=old, new_string=new, replace_all=replace_all)]


_EDITS: Final = (Coverage(key=EDITS, label="edits by write_file, edit_file and move"),)
_DELETIONS: Final = (Coverage(key="deletions", label="deletions by delete"),)


async def _shown(
    preview: Callable[[], str], coverages: tuple[Coverage, ...]
) -> Assessment:
    """Say what a call changes.

    Raises:
        ToolError: it must fail.
    """
    return Assessment(
        effects=("write",),
        details=await to_thread.run_sync(preview),
        coverages=coverages,
    )
