"""Servers for this computer: the Realtime API, and stand-ins for what runs in the cloud."""
