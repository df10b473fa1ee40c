"""Live captions for everything a computer hears."""
