"""Where sound comes from: devices, capture and media files."""
