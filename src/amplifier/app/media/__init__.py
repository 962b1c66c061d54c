"""What prompts show besides text: made of files, and read from what a person types."""

from amplifier_kit.media.files import Audio, Document, Image, Video

__all__ = ["Audio", "Document", "Image", "Video"]
