"""Neural rankers as trainable networks: torch, transformers and numpy only, so that they train on any machine."""

from typing import TYPE_CHECKING, Any

from whyrank.core.lazy import front_door
from whyrank.core.registry import Registry

networks: Registry[Any] = Registry(
    "networks",
    "architecture",
    {
        "cross": "whyrank.networks.cross:CrossNetwork",
        "vanilla": "whyrank.networks.cross:VanillaNetwork",
        "cedr-knrm": "whyrank.networks.cedr:CedrKnrmNetwork",
        "cedr-drmm": "whyrank.networks.cedr:CedrDrmmNetwork",
        "cedr-pacrr": "whyrank.networks.cedr:CedrPacrrNetwork",
        "knrm": "whyrank.networks.knrm:KnrmNetwork",
        "conv-knrm": "whyrank.networks.knrm:ConvKnrmNetwork",
        "epic": "whyrank.networks.epic:EpicNetwork",
        "late": "whyrank.networks.late:LateNetwork",
        "sparse": "whyrank.networks.sparse:SparseNetwork",
        "neural-model1": "whyrank.networks.model1:NeuralModel1Network",
        "bert-model1": "whyrank.networks.model1:BertModel1Network",
        "parm": "whyrank.networks.parm:ParmNetwork",
    },
)

if TYPE_CHECKING:
    from whyrank.networks.encoder import Encoder, load_encoder, new_encoder
    from whyrank.networks.first_position import first_only, is_plain
    from whyrank.networks.model1 import NeuralModel1Network, matrix
    from whyrank.networks.network import (
        CONFIG,
        WEIGHTS,
        Network,
        digest,
        is_network,
        load,
        make,
        read_config,
        save,
        start,
    )
    from whyrank.networks.parm import BARE, FRAMES, ParmNetwork, frame_terms
    from whyrank.networks.separate import SeparateNetwork, join, take
    from whyrank.networks.tokens import (
        CHARACTERS_PER_TOKEN,
        Arrays,
        Ids,
        ModelTokenizer,
        padded,
        pair_arrays,
        single_arrays,
        tensors,
    )

front_door(__name__)
