"""Vision networks of the package transformers, a few layers of each.

NAME: (class, field of its output, settings of its configuration). Images are 64 x 64.
"""

from __future__ import annotations

import functools
from typing import Any

from mlir_npu.scripts.networks.survey.entry import (
    Entry,
    noise,
    recipe,
    transformers_model,
)

IMAGE = 64  # pixels, both ways

_FEATURES = "last_hidden_state"
_STAGES = dict(hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 2, 1])
_ENCODER = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
_VIT = dict(_ENCODER, image_size=IMAGE, patch_size=16)
_PYRAMID = dict(
    hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4]
)
_SWIN = dict(image_size=IMAGE, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)


def _resnet_config() -> Any:
    import transformers

    return transformers.ResNetConfig(
        embedding_size=16, **_STAGES, out_features=["stage4"], layer_type="basic"
    )


def _dinov2_config() -> Any:
    import transformers

    return transformers.Dinov2Config(
        hidden_size=32, num_hidden_layers=4, num_attention_heads=4, image_size=IMAGE, patch_size=16,
        out_indices=[1, 2, 3, 4], apply_layernorm=True, reshape_hidden_states=False,
    )  # fmt: skip


def _beit_config() -> Any:
    import transformers

    return transformers.BeitConfig(
        **dict(_VIT, num_hidden_layers=4), out_indices=[1, 2, 3, 4], reshape_hidden_states=False
    )


def _convnext_config() -> Any:
    import transformers

    return transformers.ConvNextConfig(**_STAGES, out_indices=[1, 2, 3, 4])


NETWORKS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "ResNet": ("ResNetModel", _FEATURES, dict(embedding_size=16, **_STAGES)),
    "RegNet": ("RegNetModel", _FEATURES, dict(embedding_size=16, groups_width=8, **_STAGES)),
    "BiT": ("BitModel", _FEATURES, dict(embedding_size=16, num_groups=4, **_STAGES)),
    "BiT, same padding": (
        "BitModel",
        _FEATURES,
        dict(embedding_size=16, num_groups=4, global_padding="same", **_STAGES),
    ),
    "HGNetV2": (
        "HGNetV2ForImageClassification",
        "logits",
        dict(
            embedding_size=16,
            stem_channels=[3, 8, 16],
            hidden_sizes=[16, 24, 32, 48],
            stage_in_channels=[16, 16, 24, 32],
            stage_mid_channels=[8, 8, 16, 16],
            stage_out_channels=[16, 24, 32, 48],
            stage_num_blocks=[1, 1, 1, 1],
            stage_numb_of_layers=[2, 2, 2, 2],
            use_learnable_affine_block=True,
        ),
    ),  # fmt: skip
    "TextNet": (
        "TextNetModel",
        _FEATURES,
        dict(
            stem_out_channels=8,
            hidden_sizes=[8, 8, 16, 16, 24],
            conv_layer_kernel_sizes=[[[3, 3]], [[3, 1]], [[1, 3]], [[3, 3]]],
            conv_layer_strides=[[1], [2], [2], [1]],
        ),
    ),  # fmt: skip
    "MobileNetV1": ("MobileNetV1Model", _FEATURES, dict(depth_multiplier=0.25, image_size=IMAGE)),
    "MobileNetV2": ("MobileNetV2Model", _FEATURES, dict(depth_multiplier=0.25, image_size=IMAGE)),
    "EfficientNet": (
        "EfficientNetModel",
        _FEATURES,
        dict(
            image_size=IMAGE,
            width_coefficient=0.5,
            depth_coefficient=0.5,
            hidden_dim=640,
            in_channels=[32, 16, 24, 40],
            out_channels=[16, 24, 40, 80],
            kernel_sizes=[3, 3, 5, 3],
            strides=[1, 2, 2, 1],
            num_block_repeats=[1, 2, 1, 2],
            expand_ratios=[1, 6, 6, 6],
        ),
    ),  # fmt: skip
    "ConvNeXt": ("ConvNextModel", _FEATURES, _STAGES),
    "ConvNeXt V2": ("ConvNextV2Model", _FEATURES, _STAGES),
    "DINOv3 ConvNeXt": ("DINOv3ConvNextModel", _FEATURES, dict(_STAGES, image_size=IMAGE)),
    "PoolFormer": ("PoolFormerModel", _FEATURES, _STAGES),
    "FocalNet": (
        "FocalNetModel",
        _FEATURES,
        dict(
            image_size=IMAGE,
            embed_dim=16,
            hidden_sizes=[16, 32],
            depths=[1, 2],
            focal_levels=[2, 2],
            focal_windows=[3, 3],
        ),
    ),  # fmt: skip
    "SwiftFormer": (
        "SwiftFormerModel",
        _FEATURES,
        dict(image_size=IMAGE, depths=[1, 1, 1, 1], embed_dims=[16, 24, 32, 48]),
    ),
    "ViT": ("ViTModel", _FEATURES, _VIT),
    "ViT-MSN": ("ViTMSNModel", _FEATURES, _VIT),
    "DeiT": ("DeiTModel", _FEATURES, _VIT),
    "I-JEPA": ("IJepaModel", _FEATURES, _VIT),
    "SigLIP vision": ("SiglipVisionModel", _FEATURES, _VIT),
    "CLIP vision": ("CLIPVisionModel", _FEATURES, _VIT),
    "BEiT": (
        "BeitModel",
        _FEATURES,
        dict(_VIT, use_relative_position_bias=True, use_mask_token=False),
    ),
    "Data2Vec vision": (
        "Data2VecVisionModel",
        _FEATURES,
        dict(_VIT, use_shared_relative_position_bias=True),
    ),
    "DINOv2": ("Dinov2Model", _FEATURES, dict(_VIT, use_swiglu_ffn=True)),
    "DINOv2 with registers": ("Dinov2WithRegistersModel", _FEATURES, _VIT),
    "DINOv3 ViT": ("DINOv3ViTModel", _FEATURES, _VIT),
    "ViTDet": (
        "VitDetModel",
        _FEATURES,
        dict(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            image_size=IMAGE,
            pretrain_image_size=IMAGE,
            window_block_indices=[0],
            window_size=3,
            residual_block_indices=[1],
            use_relative_position_embeddings=True,
        ),
    ),  # fmt: skip
    "Hiera": (
        "HieraModel",
        _FEATURES,
        dict(
            embed_dim=16,
            image_size=[IMAGE, IMAGE],
            depths=[1, 1, 1],
            num_heads=[1, 2, 4],
            masked_unit_size=[8, 8],
            masked_unit_attention=[True, True, False],
            num_query_pool=2,
        ),
    ),  # fmt: skip
    "Swin": ("SwinModel", _FEATURES, _SWIN),
    "SwinV2": ("Swinv2Model", _FEATURES, dict(_SWIN, pretrained_window_sizes=[0, 0])),
    "Swin2SR": (
        "Swin2SRForImageSuperResolution",
        "reconstruction",
        dict(
            image_size=16,
            embed_dim=16,
            depths=[2, 2],
            num_heads=[2, 2],
            window_size=8,
            patch_size=1,
            upscale=2,
            upsampler="pixelshuffle",
        ),
    ),  # fmt: skip
    "PVT": (
        "PvtModel",
        _FEATURES,
        dict(_PYRAMID, image_size=IMAGE, mlp_ratios=[2, 2, 2, 2]),
    ),
    "PVT V2": (
        "PvtV2Model",
        _FEATURES,
        dict(_PYRAMID, image_size=IMAGE, mlp_ratios=[2, 2, 2, 2]),
    ),
    "PVT V2 linear": (
        "PvtV2Model",
        _FEATURES,
        dict(_PYRAMID, image_size=2 * IMAGE, mlp_ratios=[2, 2, 2, 2], linear_attention=True),
    ),
    "SegFormer": (
        "SegformerForSemanticSegmentation",
        "logits",
        dict(_PYRAMID, mlp_ratios=[2, 2, 2, 2], decoder_hidden_size=32, num_labels=5),
    ),
    "GLPN": (
        "GLPNForDepthEstimation",
        "predicted_depth",
        dict(_PYRAMID, mlp_ratios=[2, 2, 2, 2], decoder_hidden_size=16),
    ),
    "MobileViT": (
        "MobileViTModel",
        _FEATURES,
        dict(
            image_size=IMAGE,
            hidden_sizes=[16, 24, 32],
            neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 48],
            num_attention_heads=2,
        ),
    ),  # fmt: skip
    "MobileViT segmentation": (
        "MobileViTForSemanticSegmentation",
        "logits",
        dict(
            image_size=IMAGE,
            hidden_sizes=[16, 24, 32],
            neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 48],
            num_attention_heads=2,
            aspp_out_channels=16,
            num_labels=5,
        ),
    ),  # fmt: skip
    "MobileViT V2": (
        "MobileViTV2Model",
        _FEATURES,
        dict(
            image_size=IMAGE,
            width_multiplier=0.25,
            n_attn_blocks=[1, 1, 1],
            base_attn_unit_dims=[64, 96, 128],
        ),
    ),  # fmt: skip
    "LeViT": (
        "LevitModel",
        _FEATURES,
        dict(
            image_size=IMAGE,
            hidden_sizes=[16, 24, 32],
            num_attention_heads=[2, 2, 4],
            depths=[1, 1, 1],
            key_dim=[8, 8, 8],
        ),
    ),  # fmt: skip
    "CvT": (
        "CvtModel",
        _FEATURES,
        dict(embed_dim=[16, 24, 32], num_heads=[1, 2, 4], depth=[1, 2, 3]),
    ),
    "UperNet": (
        "UperNetForSemanticSegmentation",
        "logits",
        dict(
            backbone_config=_convnext_config,
            hidden_size=16,
            auxiliary_in_channels=32,
            auxiliary_channels=16,
            num_labels=5,
            use_auxiliary_head=False,
        ),
    ),  # fmt: skip
    "DPT": (
        "DPTForDepthEstimation",
        "predicted_depth",
        dict(
            _VIT,
            num_hidden_layers=4,
            backbone_out_indices=[0, 1, 2, 3],
            neck_hidden_sizes=[8, 16, 24, 32],
            fusion_hidden_size=16,
        ),
    ),  # fmt: skip
    "Depth Anything": (
        "DepthAnythingForDepthEstimation",
        "predicted_depth",
        dict(
            backbone_config=_dinov2_config,
            patch_size=16,
            reassemble_hidden_size=32,
            neck_hidden_sizes=[8, 16, 24, 32],
            fusion_hidden_size=16,
            head_hidden_size=8,
        ),
    ),  # fmt: skip
    "ZoeDepth": (
        "ZoeDepthForDepthEstimation",
        "predicted_depth",
        dict(
            backbone_config=_beit_config,
            neck_hidden_sizes=[8, 16, 24, 32],
            fusion_hidden_size=16,
            bottleneck_features=16,
            num_relative_features=8,
            bin_embedding_dim=8,
            bin_configurations=[
                {"n_bins": 16, "min_depth": 0.001, "max_depth": 10.0, "name": "nyu"}
            ],
        ),
    ),  # fmt: skip
    "YOLOS": (
        "YolosForObjectDetection",
        "pred_boxes",
        dict(_VIT, image_size=[IMAGE, IMAGE], num_detection_tokens=5),
    ),
    "DETR": (
        "DetrForObjectDetection",
        "pred_boxes",
        dict(
            backbone_config=_resnet_config,
            d_model=32,
            encoder_layers=1,
            decoder_layers=1,
            encoder_ffn_dim=64,
            decoder_ffn_dim=64,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            num_queries=5,
        ),
    ),  # fmt: skip
}


def entries() -> list[Entry]:
    return [_entry(name) for name in NETWORKS]


def _entry(name: str) -> Entry:
    model_class, field, settings = NETWORKS[name]
    size = settings.get("image_size", IMAGE)
    shape = (2, 3, *(size if isinstance(size, list) else (size, size)))
    return Entry(
        name,
        functools.partial(_build, name),
        noise(*shape),
        recipe(model_class, field, _plain(settings), shape),
    )


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with functions by their names."""
    return {k: v.__name__ if callable(v) else v for k, v in settings.items()}


def _build(name: str):
    model_class, field, settings = NETWORKS[name]
    settings = {key: value() if callable(value) else value for key, value in settings.items()}
    return transformers_model(model_class, settings, "pixel_values", field)
