"""The second list: sixteen networks as people run them today, for export.py. Configurations are written out, weights random.

Each row of NETWORKS: a function that makes the network, its inputs (a shape, or the array itself), and the names of its outputs.
What depends on past tokens takes and gives them as ports, past_LAYER_key and past_LAYER_value, as exported language models do."""
import numpy as np
import torch
from torch import nn
from torch.nn import functional


class Named(nn.Module):
    """A model of transformers, called by names, and what is taken of its results."""

    def __init__(self, model, names, take):
        super().__init__()
        self.model, self.names, self.take = model, names, take

    def forward(self, *inputs):
        return self.take(self.model(**dict(zip(self.names, inputs)), return_dict=True))


# ---- texts

def bert(layers, hidden, intermediate):
    def make():
        from transformers import BertConfig, BertModel
        config = BertConfig(vocab_size=30522, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=12,
                            intermediate_size=intermediate, max_position_embeddings=512, hidden_act="gelu", attn_implementation="eager")
        return Named(BertModel(config, add_pooling_layer=False), ["input_ids", "attention_mask", "token_type_ids"],
                     lambda result: result.last_hidden_state)
    return make


def tokens(length):
    """Inputs of a BERT: random tokens, no padding, one sentence."""
    return {"input_ids": [1, length], "attention_mask": [1, length], "token_type_ids": np.zeros([1, length], np.int64)}


def modernbert():
    from transformers import ModernBertConfig, ModernBertModel
    config = ModernBertConfig(vocab_size=50368, hidden_size=768, intermediate_size=1152, num_hidden_layers=22, num_attention_heads=12,
                              max_position_embeddings=8192, global_attn_every_n_layers=3, local_attention=128,
                              attn_implementation="eager", reference_compile=False)
    return Named(ModernBertModel(config), ["input_ids", "attention_mask"], lambda result: result.last_hidden_state)


# ---- language models

LAYERS, KEY_HEADS, HEAD = 30, 3, 64  # of SmolLM2-135M


class Decoder(nn.Module):
    """SmolLM2-135M: tokens and what it keeps of those before; the next token's logits, and what it keeps now."""

    def __init__(self):
        super().__init__()
        from transformers import LlamaConfig, LlamaForCausalLM
        config = LlamaConfig(vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=LAYERS, num_attention_heads=9,
                             num_key_value_heads=KEY_HEADS, max_position_embeddings=8192, rope_theta=100000.0, rms_norm_eps=1e-5,
                             tie_word_embeddings=True, hidden_act="silu", attn_implementation="eager")
        self.model = LlamaForCausalLM(config)

    def forward(self, input_ids, attention_mask, position_ids, *past):
        from transformers import DynamicCache
        cache = DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        new, known = input_ids.shape[1], attention_mask.shape[1]
        later = torch.ones(new, known, dtype=torch.bool).triu(known - new + 1)
        hidden = later[None, None] | (attention_mask[:, None, None, :] == 0)
        mask = torch.zeros(1, 1, new, known).masked_fill(hidden, torch.finfo(torch.float32).min)
        result = self.model(input_ids=input_ids, attention_mask=mask, position_ids=position_ids, past_key_values=cache, use_cache=True,
                            return_dict=True)
        kept = result.past_key_values
        pairs = [(layer.keys, layer.values) for layer in kept.layers] if hasattr(kept, "layers") else list(zip(kept.key_cache, kept.value_cache))
        return (result.logits, *(tensor for pair in pairs for tensor in pair))


def ports(prefix, layers, kinds=("key", "value")):
    return [f"{prefix}_{layer}_{kind}" for layer in range(layers) for kind in kinds]


def step(new, past):
    shapes = {"input_ids": [1, new], "attention_mask": [1, past + new], "position_ids": np.arange(past, past + new, dtype=np.int64)[None]}
    return {**shapes, **({name: [1, KEY_HEADS, past, HEAD] for name in ports("past", LAYERS)} if past else {})}


# ---- speech

def whisper_config():
    from transformers import WhisperConfig
    return WhisperConfig(vocab_size=51865, num_mel_bins=80, d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6,
                         decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536, max_source_positions=1500,
                         max_target_positions=448, activation_function="gelu", attn_implementation="eager")


def whisper_encoder():
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    return Named(WhisperEncoder(whisper_config()), ["input_features"], lambda result: result.last_hidden_state)


class WhisperStep(nn.Module):
    """One token of Whisper's decoder: with keys and values of the tokens before, and of the encoder's 1500 frames."""

    def __init__(self):
        super().__init__()
        from transformers import WhisperForConditionalGeneration
        model = WhisperForConditionalGeneration(whisper_config())
        self.decoder, self.head = model.model.decoder, model.proj_out

    def forward(self, input_ids, *past):
        from transformers import DynamicCache, EncoderDecoderCache
        own, frames = DynamicCache(), DynamicCache()
        for layer in range(len(past) // 4):
            own.update(past[4 * layer], past[4 * layer + 1], layer)
            frames.update(past[4 * layer + 2], past[4 * layer + 3], layer)
        cache = EncoderDecoderCache(own, frames)
        for layer in range(len(past) // 4):
            cache.is_updated[layer] = True
        known = past[0].shape[2]
        encoded = torch.zeros(1, past[2].shape[2], 384)  # only looked at where its keys are not known
        result = self.decoder(input_ids=input_ids, encoder_hidden_states=encoded, past_key_values=cache, use_cache=True,
                              position_ids=torch.tensor([[known]]), cache_position=torch.tensor([known]), return_dict=True)
        kept = result.past_key_values.self_attention_cache
        pairs = [(layer.keys, layer.values) for layer in kept.layers] if hasattr(kept, "layers") else list(zip(kept.key_cache, kept.value_cache))
        return (self.head(result.last_hidden_state), *(tensor for pair in pairs for tensor in pair))


def whisper_step(past):
    kinds = {"key": past, "value": past, "frames_key": 1500, "frames_value": 1500}
    return {"input_ids": [1, 1], **{name: [1, 6, kinds[name.split("_", 2)[2]], 64] for name in ports("past", 4, kinds)}}


class Vocoder(nn.Module):
    """The generator of a VITS (HiFi-GAN): 192 channels of a frame become 256 samples by four transposed convolutions, each followed
    by three stacks of dilated ones."""

    def __init__(self, channels=512, rates=((8, 16), (8, 16), (2, 4), (2, 4)), kernels=(3, 7, 11), dilations=(1, 3, 5)):
        super().__init__()
        self.before = nn.Conv1d(192, channels, 7, padding=3)
        self.ups, self.stacks = nn.ModuleList(), nn.ModuleList()
        for i, (rate, kernel) in enumerate(rates):
            width = channels >> (i + 1)
            self.ups.append(nn.ConvTranspose1d(2 * width, width, kernel, rate, (kernel - rate) // 2))
            for k in kernels:
                self.stacks.append(nn.ModuleList(
                    nn.ModuleList([nn.Conv1d(width, width, k, padding=d * (k - 1) // 2, dilation=d), nn.Conv1d(width, width, k, padding=(k - 1) // 2)])
                    for d in dilations))
        self.each = len(kernels)
        self.after = nn.Conv1d(channels >> len(rates), 1, 7, padding=3)

    def stack(self, x, pairs):
        for wide, narrow in pairs:
            x = x + narrow(functional.leaky_relu(wide(functional.leaky_relu(x, 0.1)), 0.1))
        return x

    def forward(self, x):
        x = self.before(x)
        for i, up in enumerate(self.ups):
            x = up(functional.leaky_relu(x, 0.1))
            x = sum(self.stack(x, pairs) for pairs in self.stacks[i * self.each : (i + 1) * self.each]) / self.each
        return torch.tanh(self.after(functional.leaky_relu(x)))


# ---- images

def timm(name):
    def make():
        import timm as library
        library.layers.set_fused_attn(False)
        return library.create_model(name, pretrained=False)
    return make


def torchvision(name, take=None, **options):
    def make():
        import torchvision as library
        models = library.models.segmentation if take is not None else library.models
        model = getattr(models, name)(weights=None, **options)
        return model if take is None else Taken(model, take)
    return make


class Taken(nn.Module):
    def __init__(self, model, name):
        super().__init__()
        self.model, self.name = model, name

    def forward(self, image):
        return self.model(image)[self.name]


class Unit(nn.Sequential):
    """Convolution, batch norm, SiLU."""

    def __init__(self, inputs, outputs, kernel=1, stride=1):
        super().__init__(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs), nn.SiLU())


class Branches(nn.Module):
    """Half of the channels go through blocks one after another, and all that came of each is concatenated."""

    def __init__(self, inputs, outputs, blocks, residual):
        super().__init__()
        self.half, self.residual = outputs // 2, residual
        self.before, self.after = Unit(inputs, outputs), Unit((2 + blocks) * self.half, outputs)
        self.blocks = nn.ModuleList(nn.Sequential(Unit(self.half, self.half, 3), Unit(self.half, self.half, 3)) for _ in range(blocks))

    def forward(self, x):
        parts = list(self.before(x).split(self.half, 1))
        for block in self.blocks:
            parts.append(parts[-1] + block(parts[-1]) if self.residual else block(parts[-1]))
        return self.after(torch.cat(parts, 1))


class Pyramid(nn.Module):
    """Three max pools one after another, all concatenated."""

    def __init__(self, channels):
        super().__init__()
        self.before, self.after, self.pool = Unit(channels, channels // 2), Unit(2 * channels, channels), nn.MaxPool2d(5, 1, 2)

    def forward(self, x):
        parts = [self.before(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.after(torch.cat(parts, 1))


class Detector(nn.Module):
    """Shaped like YOLOv8n: a backbone, a neck that goes up and down, three heads, boxes as softmaxed distances (DFL)."""

    BINS, CLASSES, STRIDES = 16, 80, (8, 16, 32)

    def __init__(self, size=320):
        super().__init__()
        self.size = size  # of the only images it takes
        self.stem = nn.Sequential(Unit(3, 16, 3, 2), Unit(16, 32, 3, 2), Branches(32, 32, 1, True), Unit(32, 64, 3, 2), Branches(64, 64, 2, True))
        self.middle = nn.Sequential(Unit(64, 128, 3, 2), Branches(128, 128, 2, True))
        self.deep = nn.Sequential(Unit(128, 256, 3, 2), Branches(256, 256, 1, True), Pyramid(256))
        self.up1, self.up2 = Branches(384, 128, 1, False), Branches(192, 64, 1, False)
        self.down1, self.down2 = Unit(64, 64, 3, 2), Unit(128, 128, 3, 2)
        self.out1, self.out2 = Branches(192, 128, 1, False), Branches(384, 256, 1, False)
        self.boxes = nn.ModuleList(nn.Sequential(Unit(c, 64, 3), Unit(64, 64, 3), nn.Conv2d(64, 4 * self.BINS, 1)) for c in (64, 128, 256))
        self.classes = nn.ModuleList(nn.Sequential(Unit(c, 80, 3), Unit(80, 80, 3), nn.Conv2d(80, self.CLASSES, 1)) for c in (64, 128, 256))
        anchors, strides = [], []
        for stride in self.STRIDES:
            side = torch.arange(size // stride) + 0.5
            y, x = torch.meshgrid(side, side, indexing="ij")
            anchors.append(torch.stack([x.flatten(), y.flatten()]))
            strides.append(torch.full([1, side.numel() ** 2], float(stride)))
        self.register_buffer("anchors", torch.cat(anchors, 1))
        self.register_buffer("strides", torch.cat(strides, 1))
        self.register_buffer("bins", torch.arange(self.BINS, dtype=torch.float32).reshape(1, self.BINS, 1, 1))

    def forward(self, image):
        fine = self.stem(image)
        middle = self.middle(fine)
        deep = self.deep(middle)
        high = self.up1(torch.cat([functional.interpolate(deep, scale_factor=2.0, mode="nearest"), middle], 1))
        first = self.up2(torch.cat([functional.interpolate(high, scale_factor=2.0, mode="nearest"), fine], 1))
        second = self.out1(torch.cat([self.down1(first), high], 1))
        third = self.out2(torch.cat([self.down2(second), deep], 1))
        found = [torch.cat([box(x), kind(x)], 1).flatten(2) for x, box, kind in zip((first, second, third), self.boxes, self.classes)]
        boxes, scores = torch.cat(found, 2).split([4 * self.BINS, self.CLASSES], 1)
        distances = (boxes.unflatten(1, (4, self.BINS)).transpose(1, 2).softmax(1) * self.bins).sum(1)
        near, far = distances.split(2, 1)
        low, high = self.anchors - near, self.anchors + far
        return torch.cat([torch.cat([(low + high) / 2, high - low], 1) * self.strides, scores.sigmoid()], 1)


def image(size):
    return {"image": [1, 3, size, size]}


NETWORKS = {
    "minilm_l6_128": (bert(6, 384, 1536), tokens(128), ["output"]),
    "bge_small_512": (bert(12, 384, 1536), tokens(512), ["output"]),
    "modernbert_128": (modernbert, {"input_ids": [1, 128], "attention_mask": [1, 128]}, ["output"]),
    "deit_tiny": (timm("deit_tiny_patch16_224"), image(224), ["output"]),
    "efficientnet_v2_s_384": (torchvision("efficientnet_v2_s"), image(384), ["output"]),
    "maxvit_t": (torchvision("maxvit_t"), image(224), ["output"]),
    "lraspp_mobilenet_v3": (torchvision("lraspp_mobilenet_v3_large", "out", weights_backbone=None), image(320), ["output"]),
    "whisper_tiny_encoder": (whisper_encoder, {"input_features": [1, 80, 3000]}, ["output"]),
    "whisper_tiny_step": (WhisperStep, whisper_step(16), ["logits"] + ports("present", 4)),
    "smollm2_prefill_64": (Decoder, step(64, 0), ["logits"] + ports("present", LAYERS)),
    "smollm2_step_256": (Decoder, step(1, 256), ["logits"] + ports("present", LAYERS)),
    "yolo_320": (Detector, image(320), ["output"]),
    "vits_vocoder": (Vocoder, {"frames": [1, 192, 64]}, ["output"]),
}
ZOO = {"zoo_unet": "unet", "zoo_densenet121": "densenet121", "zoo_vit_b16": "vit_b16"}  # what `tilth model` writes
