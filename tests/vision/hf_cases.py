"""Small checkpoints of transformers with random weights, as their own code saves them."""

from __future__ import annotations

import json
from pathlib import Path

import torch
import transformers as hf

LABELS = {0: "cat", 1: "dog", 2: "hat"}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", "dog", "leash", "red", "ball", "a", "photo", "of"]
BACKBONE = {"embedding_size": 8, "hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1], "layer_type": "basic"}


def resnet(**more):
    return hf.ResNetConfig(**BACKBONE, **more)


def detr():
    config = hf.DetrConfig(
        use_timm_backbone=False, backbone_config=resnet(out_features=["stage4"]), num_queries=6, d_model=16,
        encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=16, decoder_ffn_dim=16, id2label=LABELS,
    )  # fmt: skip
    return hf.DetrForObjectDetection(config), hf.DetrImageProcessorPil(size={"height": 64, "width": 64})


def rt(config, model):
    backbone = hf.RTDetrResNetConfig(**BACKBONE, out_features=["stage2", "stage3", "stage4"])
    made = config(
        backbone_config=backbone, encoder_hidden_dim=16, encoder_in_channels=[8, 8, 8], feat_strides=[8, 16, 32],
        encoder_ffn_dim=16, encoder_attention_heads=2, d_model=16, num_queries=6, decoder_in_channels=[16, 16, 16],
        decoder_ffn_dim=16, decoder_layers=2, decoder_attention_heads=2, num_denoising=0, id2label=LABELS,
        eval_idx=-1, hidden_expansion=0.5,
    )  # fmt: skip
    return model(made), hf.RTDetrImageProcessorPil(size={"height": 64, "width": 64})


def yolos():
    config = hf.YolosConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=[64, 64],
        num_detection_tokens=6, id2label=LABELS,
    )  # fmt: skip
    return hf.YolosForObjectDetection(config), hf.YolosImageProcessorPil(size={"height": 64, "width": 64})


def owlv2():
    text = {"vocab_size": 400, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "bos_token_id": 298, "eos_token_id": 299}  # fmt: skip
    vision = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 64}  # fmt: skip
    config = hf.Owlv2Config(text_config=text, vision_config=vision, projection_dim=16)
    tokenizer = hf.CLIPTokenizer(**clip_words(), model_max_length=16)
    processor = hf.Owlv2Processor(hf.Owlv2ImageProcessorPil(size={"height": 64, "width": 64}), tokenizer)
    model = hf.Owlv2ForObjectDetection(config)
    torch.nn.init.zeros_(model.box_head.dense2.weight)  # boxes where the patches are
    return model, processor


def clip_words():
    letters = [chr(k) for k in range(ord("a"), ord("z") + 1)]
    words = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    ids = {word: k for k, word in enumerate(words)} | {"<|startoftext|>": 298, "<|endoftext|>": 299}
    return {"vocab": ids, "merges": []}


def grounding():
    text = {"model_type": "bert", "vocab_size": len(WORDS), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}  # fmt: skip
    config = hf.GroundingDinoConfig(
        backbone_config=hf.SwinConfig(image_size=64, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=2, out_features=["stage2", "stage3", "stage4"]),
        text_config=text, num_queries=6, d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, encoder_n_points=2, decoder_n_points=2,
        max_text_len=8,
    )  # fmt: skip
    tokenizer = hf.BertTokenizer(vocab={word: k for k, word in enumerate(WORDS)})
    processor = hf.GroundingDinoProcessor(
        hf.GroundingDinoImageProcessorPil(size={"height": 128, "width": 128}), tokenizer
    )
    return hf.GroundingDinoForObjectDetection(config), processor


FAMILIES = {
    "detr": detr,
    "rt_detr_v2": lambda: rt(hf.RTDetrV2Config, hf.RTDetrV2ForObjectDetection),
    "d_fine": lambda: rt(hf.DFineConfig, hf.DFineForObjectDetection),
    "yolos": yolos,
    "owlv2": owlv2,
    "grounding": grounding,
}


def save(name: str, folder: Path) -> Path:
    """Saves a checkpoint of one family."""
    torch.manual_seed(0)
    model, processor = FAMILIES[name]()
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    assert json.loads((folder / "config.json").read_text())["model_type"]
    return folder
