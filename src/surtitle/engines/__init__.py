"""Speech engines: sound in, text events out."""
