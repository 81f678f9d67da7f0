"""Training: samplers, losses and one trainer for every network."""

from typing import TYPE_CHECKING

from whyrank.core.lazy import front_door

if TYPE_CHECKING:
    from whyrank.training.checkpoints import read_tensors, write_tensors
    from whyrank.training.data import EpochExamples, NumberedTexts, TrainingSet
    from whyrank.training.distilling import BEST, Distillation, SourcedQueries, distillation_set, sourced_queries
    from whyrank.training.losses import Pearson
    from whyrank.training.recipe import TREES, Recipe, read_recipe, recipe_of
    from whyrank.training.running import (
        LOG,
        TrainingInputs,
        check_same,
        device_name,
        find_device,
        prepare,
        read_log,
        run_folder,
        summary,
        threads,
        train_seeds,
    )
    from whyrank.training.sources import Sources, check_settings, new_network, sources_of
    from whyrank.training.trainer import Packer, Trainer

front_door(__name__)
