"""Which profile or bundle a session is made of, compiled, with the bundles that every session gets."""

from __future__ import annotations

from collections.abc import Callable

from amplifier.app.profiles.chains import CompiledProfile, compile_chain, follow_chain
from amplifier.app.profiles.documents import ProfileFile, ProfileHead
from amplifier.app.profiles.library import ProfileLibrary
from amplifier.app.profiles.selection import BUNDLE, active_profile
from amplifier.app.settings.settings import Settings
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["choose_profile"]


def choose_profile(
    name: str | None,
    library: ProfileLibrary,
    settings: Settings,
    default: Callable[[], JSONObject],
) -> CompiledProfile | None:
    """Compile the profile or bundle of a session, with the bundles that every session gets.

    Args:
        name: what the person chose; a bundle's begins with `bundle:`. An empty one chooses none, whatever is active.
        library: finds profiles.
        settings: the settings that hold.
        default: returns the plan of sessions without a profile.

    Returns:
        `None` where neither a profile nor a bundle is chosen, and no session gets a bundle.

    Raises:
        ConfigError: one is missing or not sound.
    """
    if name is None:
        name = active_profile(settings)
    else:
        name = name or None
    everywhere = settings.read().bundle.app
    if not everywhere and (name is None or not name.startswith(BUNDLE)):
        if name is None:
            return None
        return compile_chain(follow_chain(library, name))
    # most sessions have none
    from amplifier.app.bundles.chains import compile_over, follow_includes
    from amplifier.app.bundles.library import BundleLibrary

    bundles = BundleLibrary(
        places=library.places,
        project=library.project,
        collections=library.collections,
        settings=settings,
    )
    if name is not None and name.startswith(BUNDLE):
        return compile_over(follow_includes(bundles, [*everywhere, name]), name=name)
    top = (
        [_unnamed(library, default())] if name is None else follow_chain(library, name)
    )
    return compile_over(follow_includes(bundles, everywhere), top)


def _unnamed(library: ProfileLibrary, plan: JSONObject) -> ProfileFile:
    """Return the plan of sessions without a profile as a profile that has no name."""
    path = library.places.home / "profile.md"
    return ProfileFile(
        name="", path=path, level="bundled", head=ProfileHead(), fields=plan, body=""
    )
