"""What the user can set: one declaration each; file, command line and forms follow from it."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self, overload

from surtitle.core.errors import Decision, SettingsError

__all__ = ["SETTINGS", "VERSION", "AnySetting", "Setting", "Settings", "Value", "migrated"]

type Value = bool | int | float | str

type Migration = Callable[[dict[str, object]], dict[str, object]]

VERSION = 1
"""Of the settings file's shape; stands in it as `version`."""

MIGRATIONS: Mapping[int, Migration] = MappingProxyType({})
"""From each older version, how to make the mapping of the next one."""

_EXACT = 2**53
"""Whole numbers below this are exact as a float."""

_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text on one line"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting[T: (bool, int, float, str)]:
    """One thing that can be set. As an attribute of a `Settings` it is the value set."""

    key: str
    """Section and name, such as `captions.lines`."""
    default: T
    label: str
    """What a form calls it."""
    help: str
    """One or two sentences on what it changes."""
    choices: tuple[T, ...] = ()
    """If not empty, the only values allowed."""
    low: T | None = None
    """The least value allowed."""
    high: T | None = None
    """The greatest value allowed."""
    unit: str = ""
    """What a number counts, such as `%`."""

    @overload
    def __get__(self, settings: None, owner: type["Settings"]) -> Self: ...

    @overload
    def __get__(self, settings: "Settings", owner: type["Settings"]) -> T: ...

    def __get__(self, settings: "Settings | None", owner: type["Settings"]) -> Self | T:
        if settings is None:
            return self
        # A `Settings` holds checked values only, so this has the setting's type.
        return settings.get(self.key)  # type: ignore[return-value]

    @property
    def section(self) -> str:
        """The part of the key before the dot."""
        return self.key.partition(".")[0]

    @property
    def name(self) -> str:
        """The part of the key after the dot."""
        return self.key.partition(".")[2]

    @property
    def kind(self) -> type[T]:
        """The type of the value."""
        return type(self.default)

    @property
    def allowed(self) -> str:
        """What the value can be, in words."""
        if self.choices:
            return " or ".join(map(str, self.choices))
        kind = _KINDS[self.kind]
        if self.low is None or self.high is None:
            return kind
        return f"{kind} from {self.low} to {self.high}" + (f" {self.unit}" if self.unit else "")

    def check(self, value: object) -> T:
        """Return the value in the setting's type. Raises SettingsError if it is not allowed."""
        if self.kind is float and type(value) is int and abs(value) < _EXACT:
            value = float(value)
        if type(value) is not self.kind or not self._within(value):
            raise self._refusal(value)
        return value

    def parse(self, text: str) -> T:
        """Read a value as written on a command line. Raises SettingsError."""
        value: object = text
        if self.kind is bool:
            value = {"true": True, "false": False}.get(text.strip().lower(), text)
        elif self.kind is not str:
            try:
                value = self.kind(text)
            except ValueError:
                raise self._refusal(text) from None
        return self.check(value)

    def _within(self, value: T) -> bool:
        if self.choices:
            return value in self.choices
        if isinstance(value, str):
            return value.isprintable()
        # Written so that it is false for what is not a number.
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)

    def _refusal(self, value: object) -> SettingsError:
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        return SettingsError(
            f"The setting {self.key} cannot be {shown[:60]}.",
            remedy=f"It has to be {self.allowed}.",
            decision=Decision.RECONFIGURE,
            field=self.key,
        )


class Settings:
    """All settings with their values. Never changes; `with_value` makes another.

    Each declaration below is read as `settings.captions_lines` for the value and as
    `Settings.captions_lines` for the `Setting` itself.
    """

    audio_source = Setting(
        key="audio.source",
        default="system",
        choices=("system", "mic"),
        label="Listen to",
        help="What the computer plays (system) or the microphone (mic).",
    )
    audio_device = Setting(
        key="audio.device",
        default="",
        label="Device",
        help="The name of the device to listen to. Empty follows the system's default.",
    )
    engine_name = Setting(
        key="engine.name",
        default="on-device",
        choices=("on-device", "vllm", "sagemaker"),
        label="Speech engine",
        help="What turns speech into text. on-device: on this computer, without a network. "
        "vllm: a speech server of your own. sagemaker: an Amazon SageMaker endpoint.",
    )
    engine_stand_in = Setting(
        key="engine.stand_in",
        default=True,
        label="Go on on this computer",
        help="While the speech server is away, the on-device engine makes the captions.",
    )
    engine_stand_in_after = Setting(
        key="engine.stand_in_after",
        default=4.0,
        low=0.0,
        high=60.0,
        unit="s",
        label="Go on after",
        help="How long the speech server may be away before the on-device engine goes on.",
    )
    engine_model = Setting(
        key="engine.model",
        default="",
        label="Model",
        help="The name of the model as the speech server has it. Empty takes what it has.",
    )
    engine_url = Setting(
        key="engine.url",
        default="",
        label="Address of the speech server",
        help="For vllm, such as wss://gpu.home:8000/v1/realtime.",
    )
    engine_api_key_env = Setting(
        key="engine.api_key_env",
        default="",
        label="Variable with the key",
        help="The environment variable that holds the speech server's key. Empty: the keyring.",
    )
    engine_allow_plaintext = Setting(
        key="engine.allow_plaintext",
        default=False,
        label="Allow an unencrypted connection",
        help="Whoever is on the way to the speech server can then listen.",
    )
    engine_ca_bundle = Setting(
        key="engine.ca_bundle",
        default="",
        label="Trusted authorities",
        help="A PEM file with the authorities to trust in place of the system's.",
    )
    engine_endpoint = Setting(
        key="engine.endpoint",
        default="",
        label="SageMaker endpoint",
        help="The name of the endpoint.",
    )
    engine_region = Setting(
        key="engine.region",
        default="",
        label="AWS region",
        help="Where the endpoint is, such as eu-west-1. Empty: what the profile says.",
    )
    engine_profile = Setting(
        key="engine.profile",
        default="",
        label="AWS profile",
        help="Whose credentials are used. Empty: whatever is configured.",
    )
    engine_invocation_path = Setting(
        key="engine.invocation_path",
        default="",
        label="Invocation path",
        help="Path of the WebSocket in the endpoint's container. Empty: SageMaker's default.",
    )
    engine_query_string = Setting(
        key="engine.query_string",
        default="",
        label="Query string",
        help="Query of that WebSocket.",
    )
    engine_target_variant = Setting(
        key="engine.target_variant",
        default="",
        label="Production variant",
        help="Which of the endpoint's variants is used. Empty: any.",
    )
    engine_endpoint_url = Setting(
        key="engine.endpoint_url",
        default="",
        label="Address of the service",
        help="Where SageMaker is, in place of AWS's own address.",
    )
    captions_steadiness = Setting(
        key="captions.steadiness",
        default=0.5,
        low=0.0,
        high=1.0,
        label="Sooner or steadier",
        help="At 0 words come as soon as possible and may change; at 1 they come when they stay.",
    )
    captions_lines = Setting(
        key="captions.lines",
        default=2,
        low=1,
        high=6,
        label="Lines",
        help="How many lines of captions the window shows.",
    )
    captions_text_size = Setting(
        key="captions.text_size",
        default=100,
        low=50,
        high=400,
        unit="%",
        label="Text size",
        help="Size of the caption text.",
    )
    captions_opacity = Setting(
        key="captions.opacity",
        default=80,
        low=0,
        high=100,
        unit="%",
        label="Background opacity",
        help="How much of what lies behind the captions is hidden.",
    )
    transcript_save = Setting(
        key="transcript.save",
        default=True,
        label="Keep a transcript",
        help="Store on this computer what was said. Captions are shown either way.",
    )

    __slots__ = ("_unknown", "_values")

    def __init__(
        self,
        values: Mapping[str, Value] = MappingProxyType({}),
        unknown: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Everything at its default, but for these checked values and preserved fields."""
        defaults = {key: setting.default for key, setting in SETTINGS.items()}
        self._values: Mapping[str, Value] = {**defaults, **values}
        self._unknown = unknown

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, object]) -> tuple[Self, list[SettingsError]]:
        """Read a nested mapping as it stands in the file, and list what was wrong in it.

        What is wrong has its default; what is not known here is preserved.
        """
        problems = list[SettingsError]()
        try:
            mapping = migrated(mapping)
        except SettingsError as problem:
            problems.append(problem)
        values: dict[str, Value] = {}
        unknown: dict[str, object] = {}
        for section, fields in mapping.items():
            if section not in _SECTIONS:
                unknown[section] = fields
            elif isinstance(fields, Mapping):
                strange = {}
                for name, value in fields.items():
                    setting = SETTINGS.get(f"{section}.{name}")
                    try:
                        if setting is None:
                            strange[name] = value
                        else:
                            values[setting.key] = setting.check(value)
                    except SettingsError as problem:
                        problems.append(problem)
                unknown |= {section: strange} if strange else {}
            else:
                problems.append(_no_section(section))
        unknown.pop("version", None)
        return cls(values, unknown), problems

    def to_mapping(self) -> dict[str, object]:
        """Make the nested mapping that `from_mapping` reads, every setting in it."""
        mapping: dict[str, object] = {"version": VERSION, **self._unknown}
        for section in _SECTIONS:
            strange = self._unknown.get(section, {})
            assert isinstance(strange, Mapping)  # noqa: S101 - from_mapping saw to it
            fields = {
                s.name: self._values[s.key] for s in SETTINGS.values() if s.section == section
            }
            mapping[section] = {**fields, **strange}
        return mapping

    def get(self, key: str) -> Value:
        """Return the value of a setting. Raises SettingsError if there is no such key."""
        return self._values[_known(key).key]

    def with_value(self, key: str, value: object) -> Self:
        """Return settings with one changed. Raises SettingsError if key or value is wrong."""
        return self._with(key, _known(key).check(value))

    def with_text(self, key: str, text: str) -> Self:
        """Return settings with one changed to what was written on a command line."""
        return self._with(key, _known(key).parse(text))

    def _with(self, key: str, value: Value) -> Self:
        return type(self)({**self._values, key: value}, self._unknown)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Settings):
            return NotImplemented
        return self._values == other._values and self._unknown == other._unknown

    __hash__ = None  # type: ignore[assignment] # what is preserved may be unhashable

    def __repr__(self) -> str:
        changed = {k: v for k, v in self._values.items() if v != SETTINGS[k].default}
        return f"Settings({changed})"


type AnySetting = Setting[bool] | Setting[int] | Setting[float] | Setting[str]

SETTINGS: Mapping[str, AnySetting] = MappingProxyType(
    {each.key: each for each in vars(Settings).values() if isinstance(each, Setting)}
)
"""Every setting by its key, in the order of a form."""

_SECTIONS = tuple(dict.fromkeys(each.section for each in SETTINGS.values()))


def migrated(
    mapping: Mapping[str, object],
    migrations: Mapping[int, Migration] = MIGRATIONS,
    version: int = VERSION,
) -> dict[str, object]:
    """Bring a mapping of an older version to this one. Raises SettingsError.

    A mapping without a version is of this one. A newer one is an error; what can be
    understood of it may still be used.
    """
    current = dict(mapping)
    found = current.get("version", version)
    if type(found) is not int or found < 1:
        raise SettingsError(
            f"The settings have the version {str(found)[:20]!r}.",
            remedy=f"It has to be a whole number from 1 to {version}.",
            field="version",
        )
    if found > version:
        raise SettingsError(
            f"The settings were written by a newer Surtitle (version {found}, here {version}).",
            remedy="What is known here is used; update Surtitle to use the rest.",
            field="version",
        )
    for step in range(found, version):
        current = {**migrations[step](current), "version": step + 1}
    return current


def _known(key: str) -> AnySetting:
    setting = SETTINGS.get(key)
    if setting is None:
        near = difflib.get_close_matches(key, SETTINGS, n=1) or [", ".join(SETTINGS)]
        raise SettingsError(
            f"There is no setting {key[:60]!r}.", remedy=f"Did you mean {near[0]}?", field=key
        )
    return setting


def _no_section(section: str) -> SettingsError:
    return SettingsError(
        f"{section!r} in the settings has to be a section, [{section}].",
        remedy="Its settings have their defaults meanwhile.",
        decision=Decision.RECONFIGURE,
        field=section,
    )
