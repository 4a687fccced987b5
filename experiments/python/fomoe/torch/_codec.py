"""Encodes values as bytes and decodes them, as fomoe-train does (trainer/comm/wire_codec.hpp, trainer/kernels/codec/codec_row.hpp).

    fp32 bf16 fp16 fp8   the values, rounded to nearest
    int8 int4 int2       codes of b bits: q = round(x·(2^(b−1) − 1)/max|x|), halves away from zero, where the maximum is taken over
                         each block of `block_elements` values; after all codes follows the fp32 max|x| of each block

Every operation is rounded to fp32 separately and in the order of the C++ code, so that both give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from .. import InputError

_PLAIN = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.float8_e4m3fn}
_PART = 1 << 24  # values that are encoded at once, a multiple of every block, so that temporary tensors stay small
_BELOW_HALF = 0.5 - 2.0**-25
_BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4, "int2": 2}


class Codec:
    """One wire format of a plan. Raises InputError for a format that is not executed: top-k, entropy coding, int32."""

    def __init__(self, format: Mapping[str, Any]) -> None:
        kind = format["type"]
        if format.get("kept_share", 1) < 1:
            raise InputError(f"strategy.compression: got top-k, which keeps {format['kept_share']:g} of the values; expected no compression with "
                             "fomoe.torch; for example a scenario without [strategy.compression], or fomoe-train")
        if kind not in _BITS or (kind in _PLAIN and format.get("block_elements", 0)):
            raise InputError(f"strategy.payload_dtype: got {kind}; expected one of {', '.join(_BITS)}; for example \"bf16\"")
        self.bits = _BITS[kind]
        self.plain = _PLAIN.get(kind)
        self.block = int(format.get("block_elements", 0))

    @property
    def lossy(self) -> bool:
        """Whether what is lost is sent with the next payload (error feedback), as fomoe-train does in less than 16 bits."""
        return self.bits < 16

    def bytes(self, elements: int) -> int:
        bits = elements * self.bits
        if self.block:
            bits += -(-elements // self.block) * 32
        return (bits + 7) // 8

    def encode(self, values: torch.Tensor) -> torch.Tensor:
        """values [n], floating point, on any device -> uint8 [bytes(n)] on that device."""
        if self.plain is not None:
            return values.to(self.plain).contiguous().view(torch.uint8)
        return self._encode_blocks(values.to(torch.float32).contiguous())

    def decode(self, data: torch.Tensor, elements: int, like: torch.Tensor) -> torch.Tensor:
        """uint8 [bytes(elements)] -> [elements] of the dtype and device of `like`."""
        data = data.to(like.device)
        if self.plain is not None:
            return data.clone().view(self.plain).to(like.dtype)
        return self._decode_blocks(data, elements).to(like.dtype)

    def round_trip(self, values: torch.Tensor) -> torch.Tensor:
        """What a receiver reads."""
        if self.plain is not None:
            return values.to(self.plain).to(values.dtype)
        return self.decode(self.encode(values), values.numel(), values)

    @property
    def _largest(self) -> int:
        return (1 << (self.bits - 1)) - 1

    def _padded(self, x: torch.Tensor) -> torch.Tensor:
        """[n] -> [blocks, block], zeros at the end."""
        missing = -x.numel() % self.block
        return (torch.nn.functional.pad(x, (0, missing)) if missing else x).view(-1, self.block)

    def _encode_blocks(self, x: torch.Tensor) -> torch.Tensor:
        if x.numel() == 0:
            return torch.empty(0, dtype=torch.uint8, device=x.device)
        parts = [self._codes(part) for part in x.split(self._part())]
        return torch.cat([codes for codes, _ in parts] + [scales.view(torch.uint8) for _, scales in parts])

    def _part(self) -> int:
        """Whole blocks, and whole bytes of codes."""
        return max(1, _PART // (8 * self.block)) * 8 * self.block

    def _codes(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The packed codes of whole blocks and their scales."""
        blocks = self._padded(x)
        scale = blocks.abs().amax(1, keepdim=True)
        special = not bool(torch.isfinite(scale).all())  # such a payload leaves no site, but is encoded as fomoe-train encodes it
        if special:
            scale = blocks.abs().nan_to_num_(0, posinf=torch.inf).amax(1, keepdim=True)
        q = (blocks / torch.where(scale > 0, scale, torch.ones_like(scale))).mul_(float(self._largest))
        if special:
            q.nan_to_num_(0)
        # std::lround: halves go away from zero. The float before 0.5 is added, since 0.5 would round its neighbour below up.
        code = torch.copysign(torch.tensor(_BELOW_HALF, device=q.device), q).add_(q).trunc_()
        shifted = code.add_(1 << (self.bits - 1)).flatten()[: x.numel()].to(torch.uint8)
        return self._packed(shifted), scale.flatten()

    def _packed(self, codes: torch.Tensor) -> torch.Tensor:
        """Codes of `bits` bits in bytes, the first code in the lowest bits."""
        per_byte = 8 // self.bits
        if per_byte == 1:
            return codes
        parts = torch.nn.functional.pad(codes, (0, -codes.numel() % per_byte)).view(-1, per_byte)
        out = torch.zeros(parts.shape[0], dtype=torch.uint8, device=codes.device)
        for place in range(per_byte):
            out |= parts[:, place] << (place * self.bits)
        return out

    def _decode_blocks(self, data: torch.Tensor, elements: int) -> torch.Tensor:
        if elements == 0:
            return torch.empty(0, dtype=torch.float32, device=data.device)
        code_bytes = (elements * self.bits + 7) // 8
        scales = data[code_bytes:].clone().view(torch.float32)
        part = self._part()
        return torch.cat([self._values(data[begin * self.bits // 8: min(code_bytes, (begin + part) * self.bits // 8)],
                                       scales[begin // self.block: (begin + part) // self.block], min(part, elements - begin))
                          for begin in range(0, elements, part)])

    def _values(self, codes: torch.Tensor, scales: torch.Tensor, elements: int) -> torch.Tensor:
        """The inverse of _codes."""
        if self.bits < 8:
            mask = (1 << self.bits) - 1
            codes = torch.stack([(codes >> (place * self.bits)) & mask for place in range(8 // self.bits)], 1).flatten()[:elements]
        values = codes.to(torch.float32).sub_(1 << (self.bits - 1)).div_(float(self._largest))
        return self._padded(values).mul_(scales[:, None]).flatten()[:elements]
