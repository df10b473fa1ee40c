"""The pure heart: values and time in, values out. No Qt, network, device, file, clock or chance."""
