"""The tools: what a model calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import anyio
from anyio import to_thread

from amplifier_module_tool_filesystem.config import FilesystemConfig
from amplifier_module_tool_filesystem.editing import Edit, edit_text
from amplifier_module_tool_filesystem.listing import find_files, list_entries
from amplifier_module_tool_filesystem.reading import PageReader
from amplifier_module_tool_filesystem.searching import Query, Search
from amplifier_module_tool_filesystem.workspace import open_workspace
from amplifier_module_tool_filesystem.writing import write_text
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.decorators import toolset
from amplifier_sdk.events import ARTIFACT_READ, ARTIFACT_WRITE, ArtifactRead, ArtifactWrite
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.tools import tool

__all__ = ["Filesystem"]

T = TypeVar("T")


@toolset
class Filesystem:
    """Files inside the directories that the configuration allows.

    All file work is done in worker threads, so that a slow disk never holds the event loop; a long read or
    search stops soon after its call is cancelled, a write that has begun is finished.
    """

    def __init__(self, config: FilesystemConfig, coordinator: Coordinator) -> None:
        self._config = config
        self._hooks = coordinator.hooks
        self._workspace = open_workspace(config, coordinator.get_capability("session.working_dir"))
        # Two edits of one file in one batch of calls would otherwise each drop the other's change.
        self._writing = anyio.Lock()

    @tool
    async def read_file(self, file_path: str, offset: int = 1, limit: int = 2000) -> JSONObject:
        """Read lines of a text file, each with its number and a tab before it.

        When `more` is true in the result, lines follow: go on with offset = offset + lines_read.

        Args:
            file_path: relative to the working directory, or absolute.
            offset: the first line to read; the file's first is 1.
            limit: how many lines to read at most.
        """
        reader = PageReader(self._workspace, self._config, file_path, offset, limit)
        page = await _in_thread(reader.read)
        await self._hooks.emit(ARTIFACT_READ, ArtifactRead(path=page.path, bytes=page.bytes))
        return page.to_json()

    @tool
    async def write_file(self, file_path: str, content: str) -> JSONObject:
        """Write a whole text file, new or over an existing one, exactly as given, in UTF-8.

        Missing directories are created. To change a part of a file use edit_file.

        Args:
            file_path: relative to the working directory, or absolute.
            content: the whole content of the file.
        """
        async with self._writing:
            written = await _in_thread(partial(write_text, self._workspace, self._config, file_path, content))
        await self._hooks.emit(ARTIFACT_WRITE, ArtifactWrite(path=written.path, bytes=written.bytes))
        return {"file_path": written.path, "bytes": written.bytes, "created": written.created}

    @tool
    async def edit_file(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False
    ) -> JSONObject:
        """Replace an exact text in a file by another; everything else of the file stays as it is.

        Read the file first. old_string must be in the file once, unless replace_all is set; take in lines
        around it to make it unique. Leave out the line numbers that read_file shows.

        Args:
            file_path: relative to the working directory, or absolute.
            old_string: the text to replace, with its exact white space.
            new_string: the new text.
            replace_all: replace every occurrence.
        """
        edit = Edit(old=old_string, new=new_string, replace_all=replace_all)
        async with self._writing:
            edited = await _in_thread(partial(edit_text, self._workspace, self._config, file_path, edit))
        await self._hooks.emit(ARTIFACT_WRITE, ArtifactWrite(path=edited.path, bytes=edited.bytes))
        return {
            "file_path": edited.path,
            "replacements_made": edited.replacements,
            "bytes_written": edited.bytes,
        }

    @tool
    async def list_directory(self, path: str = ".", depth: int = 1) -> JSONObject:
        """List what is in a directory: names, types, and the sizes of files in bytes, in order.

        `omitted` in the result counts the entries left out because the list was full.

        Args:
            path: relative to the working directory, or absolute.
            depth: how many levels of directories to list; links are not followed.
        """
        return await _in_thread(partial(list_entries, self._workspace, self._config, path, depth))

    @tool
    async def glob(self, pattern: str, path: str = ".") -> JSONObject:
        """List the files whose path matches a pattern, in order.

        `*`, `?` and `[abc]` match within a name, `**` any number of directories, `{a,b}` either. Hidden files
        and directories match only a part of the pattern that begins with a dot.

        Args:
            pattern: relative to `path`, such as `**/*.py`.
            path: the directory to search, relative to the working directory, or absolute.
        """
        return await _in_thread(partial(find_files, self._workspace, self._config, pattern, path))

    @tool
    async def grep(
        self,
        pattern: str,
        path: str = ".",
        glob: str | None = None,
        ignore_case: bool = False,
        context: int = 0,
        max_results: int | None = None,
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
        """
        query = Query(
            pattern=pattern,
            path=path,
            glob=glob,
            ignore_case=ignore_case,
            context=context,
            max_results=max_results,
        )
        return await _in_thread(Search(self._workspace, self._config, query).run)


async def _in_thread(work: Callable[[], T]) -> T:
    return await to_thread.run_sync(work)
