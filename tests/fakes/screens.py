"""Screens that a test can plug in and out."""

from surtitle.core.placement import Monitor, Rectangle

__all__ = ["LAPTOP", "LEFT_OF_LAPTOP", "TALL", "FakeScreens"]

LAPTOP = Monitor(
    identity="eDP-1 Maker Panel",
    available=Rectangle(x=0, y=0, width=800, height=760),
    primary=True,
)
LEFT_OF_LAPTOP = Monitor(
    identity="HDMI-1 Other Wide 7",
    available=Rectangle(x=-1920, y=-200, width=1920, height=1080),
)
TALL = Monitor(
    identity="DP-2 Third Tall",
    available=Rectangle(x=800, y=0, width=600, height=1600),
)


class FakeScreens:
    """What `surtitle.ui.screens.monitors` would find, as the test says."""

    def __init__(self, *monitors: Monitor) -> None:
        self.present = list(monitors)

    def __call__(self) -> list[Monitor]:
        return list(self.present)
