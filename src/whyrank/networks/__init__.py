"""Neural rankers as trainable networks: torch, transformers and numpy only, so that they train on any machine."""

from typing import Any

from whyrank.core.registry import Registry

networks: Registry[Any] = Registry(
    "networks",
    "architecture",
    {
        "cross": "whyrank.networks.cross:CrossNetwork",
        "vanilla": "whyrank.networks.cross:VanillaNetwork",
        "cedr-knrm": "whyrank.networks.cedr:CedrKnrm",
        "cedr-drmm": "whyrank.networks.cedr:CedrDrmm",
        "cedr-pacrr": "whyrank.networks.cedr:CedrPacrr",
        "knrm": "whyrank.networks.knrm:Knrm",
        "conv-knrm": "whyrank.networks.knrm:ConvKnrm",
        "epic": "whyrank.networks.epic:EpicNetwork",
        "late": "whyrank.networks.late:LateNetwork",
        "sparse": "whyrank.networks.sparse:SparseNetwork",
        "neural-model1": "whyrank.networks.model1:NeuralModel1",
        "bert-model1": "whyrank.networks.model1:BertModel1",
        "parm": "whyrank.networks.parm:ParmNetwork",
    },
)

__all__ = ["networks"]
