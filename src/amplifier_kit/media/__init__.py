"""Media of prompts and results: made of files, measured by their headers, fitted to what a model takes."""
