"""Training: samplers, losses and one trainer for every network."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.training.checkpoints import read_tensors, write_tensors
    from whyrank.training.data import Examples, Texts, TrainingSet
    from whyrank.training.distilling import Distillation, distillation_set
    from whyrank.training.losses import Pearson
    from whyrank.training.mining import BEST, embed
    from whyrank.training.packing import Packer
    from whyrank.training.phases import First, Second, analyzer_of, first_phase, second_phase
    from whyrank.training.prepared import (
        Prepared,
        list_sources,
        load_prepared,
        load_sources,
        save_prepared,
        save_sources,
    )
    from whyrank.training.preparing import prepare, sources_of
    from whyrank.training.recipe import TREES, Recipe, read_recipe, recipe_of
    from whyrank.training.running import (
        LOG,
        begun,
        check_same,
        checked_device,
        device_name,
        summary,
        threads,
        train_seeds,
    )
    from whyrank.training.sources import Sources, check_settings, new_network
    from whyrank.training.trainer import History, Trainer

front_door(__name__)
