"""All that one search needs, checked at once: the same fields for flags, a YAML file and the Python API."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import ErrorDetails

from automl import registry
from automl.artifacts import absolute_root
from automl.byte_sizes import bytes_in
from automl.configuration_text import is_table
from automl.counts import count_in
from automl.env import default_storage
from automl.errors import InvalidSpecError, UnknownPluginError
from automl.plugin_options import make_pruner, make_sampler
from search_spaces import catalog
from search_spaces.configuration import JsonScalar
from search_spaces.discovery import PluginImportError
from search_spaces.errors import InvalidSpaceError, SpaceNameClashError, UnknownSearchSpaceError, did_you_mean
from search_spaces.own_files import is_file_reference
from search_spaces.space import SearchSpace
from studies.names import check_keys, check_study_name
from trainers.artifact_files import check_writable, is_url
from trainers.config import Direction, Parallelism, Precision
from trainers.custom.command import Command
from trainers.data.spec import DataSpec
from trainers.errors import InvalidTrainerError, MistakeElsewhereError
from trainers.replaced_parameters import searched_space
from trainers.settings import (
    check_metric,
    check_offers,
    checked_constants,
    full_configuration,
    measured,
    objective_direction,
    usual_objective,
)
from trainers.tasks import load_trainer
from trainers.trainer import Trainer
from trainers.training_choice import (
    check_can_train,
    check_data_options,
    check_looking_inside,
    check_parallel,
    check_ranks,
    check_sharing_offers,
    load_named_trainer,
    placed_data,
    placed_reference,
    trainer_reference,
)

__all__ = ["SearchSpec", "read_yaml"]


class SearchSpec(BaseModel):
    """What to search, on which data, for how long and where; frozen and complete once it is made."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=True, allow_inf_nan=False
    )

    space: str
    """Search space: a name that `automl spaces` lists, or the import path or the .py file of a module with SPACE and
    build_model."""
    script: str | None = None
    """Command that trains one configuration and prints its metrics, such as "python train.py"; instead of a trainer."""
    trainer: str | None = Field(default=None, validate_default=True)
    """Who trains: a name, module:Class, or a .py file with fit(context) or datasets(source). Default: what the space is
    made for."""
    data: DataSpec = DataSpec()
    """Data: `digits`, an .npz file, a folder with one sub-folder of images per class, a table of rows or texts, or what
    a trainer of one's own reads."""
    study: Annotated[str, Field(min_length=1, max_length=512)] = Field(default=None, validate_default=True)
    """Name of the study; a study that exists is continued. Default: made from space and data."""
    storage: str = Field(default_factory=default_storage)
    """Database URL: sqlite:///FILE, postgresql://USER@HOST/NAME or mysql://USER@HOST/NAME. Default: AUTOML_STORAGE, or
    sqlite:///automl-runs/studies.db."""
    artifacts: str | None = None
    """Folder or URL (s3://BUCKET/PLACE, gs://, ..) of checkpoints and reports. Default: `artifacts` beside an SQLite
    file, else automl-runs/artifacts."""
    trials: Annotated[int, Field(ge=1)] = 30
    """Ended trials that the study shall have in all, over every run and machine."""
    timeout: Annotated[float, Field(gt=0)] | None = None
    """Seconds that the study shall be searched in all, over every run and machine; rests do not count."""
    target_value: float | None = None
    """Objective at which the study has what it wants; every process that searches it ends."""
    warm_start: str | None = None
    """Results to learn from before the first proposal: the name of another study, or a .csv or .json file."""
    metric: str = Field(default=None, validate_default=True)
    """Objective, measured on the validation split. Default: the usual one of the trainer."""
    direction: Direction | None = None
    """Whether a larger or a smaller objective is better. Default: what the metric says."""
    epochs: Annotated[int, Field(ge=1)] = 9
    """Epochs of a full training."""
    set: Mapping[str, JsonScalar] = {}
    """Training parameter with one value for all trials, such as optimizer=sgd, also instead of being searched; may be
    given several times."""
    sampler: str = "auto"
    """How configurations are proposed; auto: by the method that suits the space, which is told."""
    sampler_option: Mapping[str, JsonScalar] = {}
    """Setting of the sampler, such as population_size=20; may be given several times."""
    inherit_weights: bool = False
    """Let a trial that descends from another one begin with its weights as far as they fit; not with any --sampler."""
    pruner: str = Field(default=None, validate_default=True)
    """Which trials are stopped early. Default: asha_promote, or asha where a trainer of one's own may keep no
    checkpoints to go on from."""
    pruner_option: Mapping[str, JsonScalar] = {}
    """Setting of the pruner, such as eta=4; may be given several times."""
    concurrency: Literal["auto"] | int = "auto"
    """Trials that train at the same time; auto: as many as the machines hold."""
    procs_per_trial: Annotated[int, Field(ge=1)] = 1
    """Ranks (processes) that train one trial together."""
    parallel: Parallelism = "auto"
    """How ranks share a training: ddp copies the network, fsdp cuts it, too, pipeline gives each rank some layers;
    auto is ddp."""
    gpus_per_trial: Annotated[float, Field(ge=0)] | None = None
    """GPUs of one trial: one per rank, or for a single rank a share of one, such as 0.25. Default: one per rank where
    there are GPUs, else none."""
    cpus_per_trial: Annotated[float, Field(gt=0)] | None = None
    """CPUs of one trial, shared by its ranks. Default: the machines' CPUs divided among the trials."""
    memory_per_trial: Annotated[int, Field(gt=0)] | None = None
    """Memory that one trial reserves, such as 8GiB or 500MB. Default: none is reserved."""
    spread: bool = False
    """Let the ranks of a trial run on several machines, where no single one has room for them."""
    precision: Precision = "auto"
    """Number format of forward and backward; auto: bf16 on GPUs that compute in it, else fp32."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of the study: of its proposals, and of each trial's weights, data order and augmentation."""
    max_params: Annotated[int, Field(ge=1)] | None = None
    """Most weights of a network, such as 1e6 or 1M; larger ones are infeasible and are not trained. Default: any
    number."""
    max_flops: Annotated[int, Field(ge=1)] | None = None
    """Most multiply-adds of a network for one item, such as 150M; as with max-params. Default: any number."""
    max_latency_ms: Annotated[float, Field(gt=0)] | None = None
    """Most milliseconds of a network for one item, measured on this machine: on its GPU where trials have one, else in
    one thread of its CPU. Default: any time."""
    max_memory_mib: Annotated[float, Field(gt=0)] | None = None
    """Most MiB that a training is estimated to need on each rank, with the whole network. Default: any amount."""
    tensorboard: bool = False
    """Write curves, histograms, the graph and some images of each trial for TensorBoard, below the artifacts."""
    profile: bool = False
    """Profile a few steps of each trial: a trace and the ten dearest operators, beside its checkpoints."""
    executor: Literal["ray", "inline"] = "ray"
    """Where trials run: on Ray, or one after the other in this process (for tests and debugging)."""
    ray_address: str | None = None
    """HOST:PORT or auto: join a Ray cluster. Default: start a private one on this machine and end it."""
    wait_for_nodes: Annotated[float, Field(ge=0)] = 0.0
    """Seconds to wait for machines that can hold a trial, where the cluster has none yet."""
    trial_timeout: Annotated[float, Field(gt=0)] | None = None
    """Seconds that one attempt of a trial may train; one that takes longer fails."""
    stall_timeout: Annotated[float, Field(ge=0)] = 600.0
    """Seconds that a trial's processes may stand still, all of them, before the trial fails; 0: for ever."""
    max_retries: Annotated[int, Field(ge=0)] = 2
    """How often a trial is started again after its process or machine was lost."""
    max_failures: Annotated[int, Field(ge=1)] = 5
    """Failed trials in a row that end the search."""

    @classmethod
    def from_mapping(cls, values: Mapping[str, object], origin: str) -> Self:
        """Make a specification from flags, a file or a request.

        Args:
            values: field name -> value; text is turned into numbers where the field is one.
            origin: where the values come from, for the message.

        Raises:
            InvalidSpecError: with every mistake in `values`.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            problems = [_sentence(details) for details in error.errors(include_url=False)]
            raise InvalidSpecError(list(dict.fromkeys(problems)), origin) from None

    @field_validator("space")
    @classmethod
    def _space_exists(cls, value: str) -> str:
        try:
            space = catalog.load(value, has_networks=False).SPACE
        except (*_SPACE_ERRORS, PluginImportError) as error:
            raise ValueError(str(error)) from error
        check_keys("parameter", space.names())  # an InvalidNameError is a ValueError: pydantic collects it
        return placed_reference(value)

    @field_validator("script")
    @classmethod
    def _script_can_run(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            return str(Command.parse(value))
        except InvalidTrainerError as error:
            raise ValueError(str(error)) from error

    @field_validator("trainer")
    @classmethod
    def _trainer_trains_the_space(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("script") is not None:
            raise ValueError("there is a script besides; give one of both")
        if "space" not in info.data or "script" not in info.data:
            return value
        space = info.data["space"]
        try:
            reference = trainer_reference(space, value, info.data["script"])
            trainer = load_named_trainer(reference)
            check_can_train(space, trainer, reference)
        except (*_SPACE_ERRORS, PluginImportError) as error:
            raise ValueError(str(error)) from error
        return reference if info.data["script"] is None else None

    @field_validator("pruner", mode="before")
    @classmethod
    def _usual_pruner_of_the_trainer(cls, value: object, info: ValidationInfo) -> object:
        trainer = _trainer(info.data)
        usual = "asha_promote" if trainer is not None and trainer.has_networks else "asha"
        return usual if value is None else value

    @field_validator("sampler", "pruner")
    @classmethod
    def _plugin_exists(cls, value: str, info: ValidationInfo) -> str:
        find = registry.sampler_class if info.field_name == "sampler" else registry.pruner_class
        try:
            find(value)
        except (UnknownPluginError, PluginImportError) as error:
            raise ValueError(str(error)) from error
        return value

    @field_validator("sampler_option")
    @classmethod
    def _sampler_has_these_options(cls, value: Mapping[str, JsonScalar], info: ValidationInfo) -> object:
        if "sampler" in info.data:
            sampler = make_sampler(info.data["sampler"], "minimize", value)  # its ValueError is collected
            trainer = _trainer(info.data)
            if sampler.scored_by is not None and trainer is not None and not trainer.has_networks:
                raise ValueError(f"no network can be scored by {sampler.scored_by}: the training builds them itself")
        return value

    @field_validator("pruner_option")
    @classmethod
    def _pruner_has_these_options(cls, value: Mapping[str, JsonScalar], info: ValidationInfo) -> object:
        if {"pruner", "epochs"} <= info.data.keys():
            make_pruner(info.data["pruner"], "minimize", info.data["epochs"], value)
        return value

    @field_validator("inherit_weights")
    @classmethod
    def _weights_have_somebody_to_come_from(cls, value: bool, info: ValidationInfo) -> bool:
        if not value:
            return value
        trainer, sampler = _trainer(info.data), info.data.get("sampler")
        if trainer is not None and not trainer.has_networks:
            name = info.data.get("trainer") or "script"
            raise ValueError(f"the trainer '{name}' builds its networks itself, if it has any; leave it out")
        if sampler is not None and not registry.sampler_class(sampler).has_parents:
            raise ValueError(
                f"what --sampler {sampler} proposes has no parents; use auto or evolution, or leave it out"
            )
        return value

    @field_validator("data", mode="before")
    @classmethod
    def _source_alone_is_enough(cls, value: object) -> object:
        return {"source": value} if isinstance(value, str) else value

    @field_validator("data")
    @classmethod
    def _data_exist(cls, value: DataSpec, info: ValidationInfo) -> DataSpec:
        trainer = _trainer(info.data)
        if trainer is not None:
            check_data_options(value, trainer)
            trainer.check(value)  # a BadDataError is a ValueError: pydantic collects it
        return placed_data(value)

    @field_validator("metric", mode="before")
    @classmethod
    def _usual_metric_of_the_trainer(cls, value: object, info: ValidationInfo) -> object:
        trainer = _trainer(info.data)
        if value is not None or trainer is None:
            return value or "unnamed"
        return usual_objective(measured(trainer, info.data.get("data")))

    @field_validator("metric")
    @classmethod
    def _metric_is_measured(cls, value: str, info: ValidationInfo) -> str:
        trainer = _trainer(info.data)
        known = {} if trainer is None else measured(trainer, info.data.get("data"))
        check_metric(value, known)
        check_keys("metric", [value])  # an InvalidNameError is a ValueError: pydantic collects it
        return value

    @field_validator("direction")
    @classmethod
    def _direction_is_known(cls, value: Direction | None, info: ValidationInfo) -> Direction | None:
        trainer = _trainer(info.data)
        if value is None and trainer is not None and "metric" in info.data:
            return objective_direction(info.data["metric"], measured(trainer, info.data.get("data")))
        return value

    @field_validator("set", mode="before")
    @classmethod
    def _constants_are_known(cls, value: object, info: ValidationInfo) -> object:
        trainer = _trainer(info.data)
        if not isinstance(value, Mapping) or trainer is None or "space" not in info.data:
            return value
        return checked_constants(value, trainer, catalog.load(info.data["space"], has_networks=False).SPACE)

    @field_validator("set")
    @classmethod
    def _task_can_do_what_is_offered(
        cls, value: Mapping[str, JsonScalar], info: ValidationInfo
    ) -> Mapping[str, JsonScalar]:
        trainer = _trainer(info.data)
        if trainer is None or "space" not in info.data:
            return value
        space = catalog.load(info.data["space"], has_networks=False).SPACE
        trainer.check_names([*space.names(), *full_configuration(value, {}, space, trainer)])
        searched = searched_space(space, value)  # its ValueError is collected
        if "data" in info.data:
            check_offers(value, searched, trainer, info.data["data"])
        return value

    @field_validator("procs_per_trial")
    @classmethod
    def _script_is_one_process(cls, value: int, info: ValidationInfo) -> int:
        check_ranks(value, info.data.get("script"))
        return value

    @field_validator("parallel")
    @classmethod
    def _own_code_shares_its_network_itself(cls, value: Parallelism, info: ValidationInfo) -> Parallelism:
        trainer = _trainer(info.data)
        if trainer is not None:
            check_parallel(value, trainer)
        ranks = info.data.get("procs_per_trial")
        if trainer is not None and ranks is not None and {"space", "set"} <= info.data.keys():
            searched = searched_space(catalog.load(info.data["space"], has_networks=False).SPACE, info.data["set"])
            check_sharing_offers(info.data["set"], value, searched, trainer, ranks, "--procs-per-trial 2")
        return value

    @field_validator("study", mode="before")
    @classmethod
    def _name_from_space_and_data(cls, value: object, info: ValidationInfo) -> object:
        if value is not None:
            return value
        if "space" not in info.data or "data" not in info.data:
            return "unnamed"
        source = Path(info.data["data"].source)
        return f"{_short_name(info.data['space'])}-{source.name if source.is_dir() else source.stem}"

    @field_validator("study")
    @classmethod
    def _name_fits_the_database(cls, value: str) -> str:
        check_study_name(value)  # an InvalidNameError is a ValueError: pydantic collects it
        return value

    @field_validator("storage")
    @classmethod
    def _storage_is_an_address(cls, value: str) -> str:
        from studies.database_url import DatabaseAddress  # loads SQLAlchemy, which listing the flags does not need
        from studies.errors import StorageError

        try:
            DatabaseAddress.parse(value)
        except StorageError as error:
            raise ValueError(str(error)) from error
        return value

    @field_validator("artifacts")
    @classmethod
    def _artifacts_can_be_written(cls, value: str | None) -> str | None:
        if value is None:
            return None
        root = absolute_root(value)  # its ValueError is collected
        if is_url(root):
            return root
        check_writable(Path(root))
        return root

    @field_validator("warm_start")
    @classmethod
    def _results_are_at_hand(cls, value: str | None) -> str | None:
        if value is not None and is_table(value) and not Path(value).expanduser().is_file():
            raise ValueError(f"there is no file {value}; give a .csv or .json file, or the name of a study")
        return value

    @field_validator("concurrency", mode="before")
    @classmethod
    def _auto_or_a_number(cls, value: object) -> object:
        if value == "auto":
            return value
        if isinstance(value, bool) or not str(value).isdecimal() or int(str(value)) < 1:
            raise ValueError(f"{value!r} is not allowed: give auto, or a whole number from 1")
        return int(str(value))

    @field_validator("gpus_per_trial")
    @classmethod
    def _one_gpu_per_rank(cls, value: float | None, info: ValidationInfo) -> float | None:
        ranks = info.data.get("procs_per_trial")
        if value and ranks and value != ranks and not (ranks == 1 and value < 1):
            share = ", or a share of one, such as 0.5" if ranks == 1 else ""
            raise ValueError(f"{value:g} GPUs for {_ranks(ranks)}; give 0, or one per rank: {ranks}{share}")
        return value

    @field_validator("memory_per_trial", mode="before")
    @classmethod
    def _bytes_in_words(cls, value: object) -> object:
        return bytes_in(value) if isinstance(value, str) else value

    @field_validator("max_params", "max_flops", mode="before")
    @classmethod
    def _whole_number_in_words(cls, value: object) -> object:
        return count_in(value) if isinstance(value, str) else value

    @field_validator("max_params", "max_flops", "max_latency_ms", "max_memory_mib")
    @classmethod
    def _networks_can_be_costed(cls, value: float | None, info: ValidationInfo) -> float | None:
        trainer = _trainer(info.data)
        if value is not None and "space" in info.data and trainer is not None and not trainer.has_networks:
            name = info.data.get("trainer") or "script"
            raise ValueError(f"the trainer '{name}' of this space has no networks to tell the costs of; leave it out")
        return value

    @field_validator("tensorboard", "profile")
    @classmethod
    def _trainings_can_be_looked_into(cls, value: bool, info: ValidationInfo) -> bool:
        trainer = _trainer(info.data)
        if value:
            check_looking_inside(trainer, tensorboard=info.field_name == "tensorboard")
        return value

    @field_validator("executor")
    @classmethod
    def _inline_runs_one_rank(cls, value: str, info: ValidationInfo) -> str:
        if value == "inline" and info.data.get("procs_per_trial", 1) > 1:
            raise ValueError(f"inline runs one rank, not {info.data['procs_per_trial']}; use --executor ray")
        ignored = [name for name in ("cpus_per_trial", "memory_per_trial", "spread") if info.data.get(name)]
        if value == "inline" and ignored:
            raise ValueError(f"inline runs in this process, without {_flags(ignored)}; use --executor ray")
        if value != "inline" and (info.data.get("artifacts") or "").startswith("memory://"):
            raise ValueError("artifacts in memory:// are seen by one process only; use --executor inline, or a folder")
        return value

    @field_validator("trial_timeout")
    @classmethod
    def _time_of_a_trial_is_watched_from_outside(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and info.data.get("executor") == "inline":
            raise ValueError("inline runs trials in this process, where nothing can end one; use --executor ray")
        return value

    @field_validator("ray_address", "wait_for_nodes")
    @classmethod
    def _machines_are_of_ray(cls, value: str | float | None, info: ValidationInfo) -> str | float | None:
        if value and info.data.get("executor") == "inline":
            raise ValueError("inline runs in this process, and on no other machine; use --executor ray")
        return value

    @field_validator("ray_address")
    @classmethod
    def _ray_address_has_a_port(cls, value: str | None, info: ValidationInfo) -> str | None:
        host, _, port = (value or "").removeprefix("ray://").rpartition(":")
        if value not in (None, "auto") and not (host and port.isdecimal()):
            raise ValueError(f"{value!r} is not allowed: give HOST:PORT, or auto")
        if value is not None and info.data.get("max_latency_ms") is not None:
            raise ValueError(
                "other machines train, while --max-latency-ms is measured on this one; leave one of both out, or limit "
                "--max-flops"
            )
        return value

    @property
    def whole_space(self) -> SearchSpace:
        """The search space with all its parameters."""
        return catalog.load(self.space, has_networks=False).SPACE

    @property
    def search_space(self) -> SearchSpace:
        """What is searched: the space without the parameters that `set` gives a value."""
        return searched_space(self.whole_space, self.set)

    @property
    def trainer_reference(self) -> str:
        """What every process knows the trainer by."""
        return trainer_reference(self.space, self.trainer, self.script)

    def make_trainer(self) -> Trainer:
        """Return a new trainer."""
        return load_trainer(self.trainer_reference)

    @property
    def objective_direction(self) -> Direction:
        """The direction, which a valid specification always has."""
        assert self.direction is not None
        return self.direction


_SPACE_ERRORS = (UnknownSearchSpaceError, SpaceNameClashError, InvalidSpaceError)
_USUAL_TASK = "image_classification"
_MOST_SHOWN = 80


def read_yaml(path: Path) -> Mapping[str, object]:
    """Read the fields of a specification from a YAML file.

    Raises:
        InvalidSpecError: the file cannot be read, is no YAML, or is no mapping; the message has the line.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSpecError([f"cannot read the file: {error.strerror}"], str(path)) from error
    except UnicodeDecodeError as error:
        raise InvalidSpecError([f"the file is not UTF-8 text: {error.reason}"], str(path)) from error
    except yaml.YAMLError as error:
        raise InvalidSpecError([f"not valid YAML: {_one_line(error)}"], str(path)) from error
    if document is None:
        return {}
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise InvalidSpecError([f"the file holds {_kind(document)}; wanted are `field: value` lines"], str(path))
    return {key.replace("-", "_"): value for key, value in document.items()}


def _trainer(valid: Mapping[str, Any]) -> Trainer | None:
    """The trainer; None: what names it is not valid.

    Of a space that is not valid it is the one of most spaces, so that all mistakes are found.
    """
    if "trainer" not in valid or "script" not in valid:
        return None
    if "space" not in valid:
        is_named = valid["trainer"] is not None or valid["script"] is not None
        return None if is_named else load_trainer(_USUAL_TASK)
    return load_trainer(trainer_reference(valid["space"], valid["trainer"], valid["script"]))


def _short_name(space: str) -> str:
    return Path(space).stem if is_file_reference(space) else space.rpartition(".")[2]


def _sentence(details: ErrorDetails) -> str:
    """One mistake in words: which field, what was given, what is allowed."""
    place = ".".join(map(str, details["loc"])).replace("_", "-")
    match details["type"]:
        case "extra_forbidden":
            name = str(details["loc"][-1])
            known = DataSpec.model_fields if len(details["loc"]) > 1 else SearchSpec.model_fields
            return f"{place}: no such field;{did_you_mean(name, known)} known: {', '.join(known)}"
        case "missing":
            return f"{place}: must be given"
        case "value_error":
            error = details.get("ctx", {}).get("error")
            place = error.place if isinstance(error, MistakeElsewhereError) else place
            return f"{place}: {details['msg'].removeprefix('Value error, ')}"
        case _ if place == "storage":  # may hold a password
            return f"{place}: not allowed: {details['msg'].lower()}"
        case _:
            return f"{place}: {_shortened(details['input'])} is not allowed: {details['msg'].lower()}"


def _flags(names: Sequence[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def _ranks(count: int) -> str:
    return "one rank" if count == 1 else f"{count} ranks"


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return problem if mark is None else f"{problem} (line {mark.line + 1}, column {mark.column + 1})"


def _kind(document: object) -> str:
    return "a list" if isinstance(document, list) else "plain text" if isinstance(document, str) else repr(document)
