"""What stays on disk: transcripts and settings."""
