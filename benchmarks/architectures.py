"""Exports of transformers and torchvision with random weights: `python architectures.py FOLDER`.

Configurations are small: folding concerns nodes, not weights. Needs torch, transformers, torchvision and
onnxscript.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from torch import Tensor, nn

OPSETS = {"TorchScript": 17, "dynamo": 18}
"""Exporter to the opset of its models."""
SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64}
IDS = {"vocab_size": 99, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
TOKENS = {name: {0: "batch", 1: "length"} for name in ("tokens", "mask")}
IMAGE = {"image": {0: "batch"}}
PIXELS = {"image": {0: "batch", 2: "height", 3: "width"}}


class Architecture(NamedTuple):
    """Network with an example of its input.

    Attributes:
        build: the network.
        inputs: example inputs.
        dynamic: the dynamic axes of each input, with their names.
    """

    build: Callable[[], nn.Module]
    inputs: tuple[Tensor, ...]
    dynamic: dict[str, dict[int, str]]


class Returned(nn.Module):
    """Network that returns one tensor of the output of another: its field of a name, or the first."""

    def __init__(self, network: nn.Module, field: str = "last_hidden_state", **settings: Any) -> None:
        super().__init__()
        self.network, self.field, self.settings = network, field, settings

    def forward(self, first: Tensor, mask: Tensor | None = None) -> Tensor:
        masks = {} if mask is None else {"attention_mask": mask}
        result = self.network(first, **masks, **self.settings)
        return result if isinstance(result, Tensor) else result[self.field]


class UNet(nn.Module):
    """Convolutions with a skip connection, group normalization, and attention over pixels."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.first = _block(3, width)
        self.down = nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.middle = _block(2 * width, 2 * width)
        self.project = nn.Linear(2 * width, 6 * width)
        self.last = _block(3 * width, width)
        self.out = nn.Conv2d(width, 3, 1)

    def forward(self, image: Tensor) -> Tensor:
        skip = self.first(image)
        value = self.middle(self.down(skip))
        batch, channels, height, width = value.shape
        rows = value.flatten(2).transpose(1, 2)
        heads = self.project(rows).reshape(batch, -1, 3, 4, channels // 4).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
        value = value + attended.transpose(1, 2).reshape(batch, channels, height, width)
        value = nn.functional.interpolate(value, size=skip.shape[2:], mode="nearest")
        result: Tensor = self.out(self.last(torch.cat([value, skip], 1)))
        return result


def _block(channels: int, out: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, out, 3, 1, 1),
        nn.GroupNorm(4, out),
        nn.SiLU(),
        nn.Conv2d(out, out, 3, 1, 1),
        nn.GroupNorm(4, out),
        nn.SiLU(),
    )


def _bert() -> nn.Module:
    return Returned(transformers.BertModel(transformers.BertConfig(**SMALL, **IDS)))


def _gpt2() -> nn.Module:
    config = transformers.GPT2Config(n_embd=32, n_layer=3, n_head=4, n_positions=64, **IDS)
    return Returned(transformers.GPT2Model(config), use_cache=False)


def _llama() -> nn.Module:
    config = transformers.LlamaConfig(**SMALL, num_key_value_heads=2, **IDS)
    return Returned(transformers.LlamaModel(config), use_cache=False)


def _vit() -> nn.Module:
    return Returned(transformers.ViTModel(transformers.ViTConfig(**SMALL, image_size=32, patch_size=8)))


def _dinov2() -> nn.Module:
    config = transformers.Dinov2Config(**SMALL, mlp_ratio=2, image_size=56, patch_size=14)
    return Returned(transformers.Dinov2Model(config))


def _swin() -> nn.Module:
    config = transformers.SwinConfig(
        image_size=64, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4
    )
    return Returned(transformers.SwinModel(config))


def _whisper() -> nn.Module:
    config = transformers.WhisperConfig(
        d_model=32, encoder_layers=3, encoder_attention_heads=4, encoder_ffn_dim=64, max_source_positions=50
    )
    return Returned(transformers.models.whisper.modeling_whisper.WhisperEncoder(config))


def _resnet() -> nn.Module:
    config = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64], depths=[2, 2, 2])
    return Returned(transformers.ResNetModel(config))


def _detr() -> nn.Module:
    backbone = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], out_features=["stage2"]
    )
    config = transformers.DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=backbone,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_queries=10,
    )
    return Returned(transformers.DetrForObjectDetection(config), "pred_boxes")


def _tv_vit() -> nn.Module:
    from torchvision.models import VisionTransformer  # the other architectures do without torchvision

    sizes = {"image_size": 32, "patch_size": 8, "hidden_dim": 32, "mlp_dim": 64}
    network: nn.Module = VisionTransformer(**sizes, num_layers=3, num_heads=4, num_classes=10)
    return network


def _tv_swin() -> nn.Module:
    from torchvision.models import SwinTransformer

    network: nn.Module = SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=10)
    return network


def _tv_convnext() -> nn.Module:
    from torchvision.models import ConvNeXt
    from torchvision.models.convnext import CNBlockConfig

    network: nn.Module = ConvNeXt([CNBlockConfig(16, 32, 2), CNBlockConfig(32, None, 2)], num_classes=10)
    return network


WORDS = torch.arange(20).reshape(2, 10) % 99, torch.ones(2, 10, dtype=torch.int64)

ARCHITECTURES = {
    "bert": Architecture(_bert, WORDS, TOKENS),
    "detr": Architecture(_detr, (torch.rand(1, 3, 64, 96),), PIXELS),
    "dinov2": Architecture(_dinov2, (torch.rand(1, 3, 56, 56),), PIXELS),
    "gpt2": Architecture(_gpt2, WORDS, TOKENS),
    "llama": Architecture(_llama, WORDS, TOKENS),
    "resnet": Architecture(_resnet, (torch.rand(2, 3, 64, 64),), PIXELS),
    "swin": Architecture(_swin, (torch.rand(2, 3, 64, 64),), IMAGE),
    "tv-convnext": Architecture(_tv_convnext, (torch.rand(2, 3, 64, 64),), PIXELS),
    "tv-swin": Architecture(_tv_swin, (torch.rand(2, 3, 64, 64),), IMAGE),
    "tv-vit": Architecture(_tv_vit, (torch.rand(2, 3, 32, 32),), IMAGE),
    "unet": Architecture(UNet, (torch.rand(2, 3, 32, 32),), PIXELS),
    "vit": Architecture(_vit, (torch.rand(2, 3, 32, 32),), IMAGE),
    "whisper": Architecture(_whisper, (torch.rand(2, 80, 100),), {"image": {0: "batch"}}),
}


def main() -> None:
    """Export each architecture with each exporter that supports it, and print the errors of the others."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for exporter, opset in OPSETS.items():
        for name, architecture in ARCHITECTURES.items():
            torch.manual_seed(0)
            network = architecture.build().eval()
            for parameter in network.parameters():
                nn.init.uniform_(parameter, -0.1, 0.1)  # else biases are 0 and scales are 1
            try:
                torch.onnx.export(
                    network,
                    architecture.inputs,
                    str(folder / f"{name}, {exporter} {opset}.onnx"),
                    input_names=list(architecture.dynamic),
                    dynamic_axes=architecture.dynamic,
                    opset_version=opset,
                    dynamo=exporter == "dynamo",
                    external_data=False,
                )
            except Exception as error:  # no exporter supports all of them
                print(f"{name}, {exporter}: {error!s:.300}", file=sys.stderr)


if __name__ == "__main__":
    main()
