"""The window, the tray and what they need of the desktop."""
