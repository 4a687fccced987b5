"""Maps the groups of a traffic plan (classes, layers, experts) to the parameters of a PyTorch model.

Each parameter has a class of the plan and, except for embeddings, a layer:

    expert       parameters that match the pattern `experts`; see Names
    router       parameters that match `router`, or that have a row or column for each expert of a layer with experts
    embedding    the embedding table; also the unembedding, unless the plan sends it as a group of its own
    norm         normalisation scales and biases
    attention    everything else: projections, dense feed-forward blocks, shared experts

The payload of a group is the concatenation of its flattened slices: first by class as the group lists them, then by layer, then in
the order of model.named_parameters(). It is the same on every node.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

import torch

from .. import InputError
from ._plan_file import Group, Owners

_EMBEDDING = re.compile(r"(^|\.)(embed_tokens|embeddings?|tok_embeddings|word_embeddings|wte|wpe|embed_in|embed)(\.|$)")
_HEAD = re.compile(r"(^|\.)(lm_head|embed_out|output)\.(weight|bias)$")
_NORM = re.compile(r"(norm|layernorm|(^|\.)ln_?\w*)(\.|_|$)", re.IGNORECASE)
_LAYER = re.compile(r"(?:^|\.)(?:layers?|h|blocks?)\.(\d+)(?:\.|$)")


@dataclasses.dataclass(frozen=True)
class Named:
    """A parameter, its class in the plan, and where it belongs. expert: its expert if the parameter belongs to one; dim: the dimension
    with one row for each expert; both None if neither."""

    name: str
    parameter: torch.nn.Parameter
    kind: str
    layer: int = -1
    expert: int | None = None
    dim: int | None = None
    routes: bool = False  # a router, which scores experts


@dataclasses.dataclass(frozen=True)
class Slice:
    """[begin, end) of parameter `index` along `dim`; dim None: all of it."""

    index: int
    dim: int | None = None
    begin: int = 0
    end: int = 0

    def of(self, whole: torch.Tensor) -> torch.Tensor:
        """The slice as a view of a tensor that has the shape of the whole parameter."""
        return whole if self.dim is None else whole.narrow(self.dim, self.begin, self.end - self.begin)


def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of parameter names: {e} and {layer} are numbers, "..." and * are any text; it matches whole parts between dots."""
    text = pattern.strip(".").replace("...", "*").strip("*").strip(".")
    if not text:
        raise InputError(f'experts: got "{pattern}"; expected a part of the names of the experts\' parameters; for example "mlp.experts.{{e}}"')
    parts = re.split(r"(\{e\}|\{layer\}|\*)", text)
    regex = {"{e}": r"(?P<e>\d+)", "{layer}": r"(?P<layer>\d+)", "*": ".*"}
    return re.compile(r"(?:^|\.)" + "".join(regex.get(part, re.escape(part)) for part in parts) + r"(?=\.|$)(?P<rest>.*)")


def layer_of(name: str) -> int:
    """The number of the layer in a parameter's name, or -1."""
    found = _LAYER.search(name) or re.search(r"(?:^|\.)(\d+)(?:\.|$)", name)
    return int(found[1]) if found else -1


class Names:
    """The parameters of a model with their classes.

    experts: pattern(s) of the experts' parameters. With {e}, or if the part after the match is a number, each expert has tensors of its
    own ("mlp.experts.{e}.w1.weight"); otherwise the first dimension of the tensor counts the experts ("mlp.experts.gate_up_proj").
    router: pattern(s) of the routers. Raises InputError.
    """

    def __init__(self, model: torch.nn.Module, groups: list[Group], experts: str | Iterable[str] | None, router: str | Iterable[str] | None,
                 opaque: bool = False) -> None:
        self.opaque = opaque  # fomoe knows only counts of parameters, and counts routers among the dense ones
        self.with_head = any("unembedding" in group.classes for group in groups)
        self.experts_of_layer: dict[int, int] = {}  # of the plan
        for group in groups:
            if group.of_experts():
                layer = group.layers[0]
                self.experts_of_layer[layer] = max(self.experts_of_layer.get(layer, 0), group.experts[1])
        # Of a model of which only counts are known, the plan has one layer with everything, whatever numbers the names have.
        self._one_layer = opaque and not self.experts_of_layer and all(group.layers[1] <= 1 for group in groups)
        default = "experts" if self.experts_of_layer else None
        self._experts = [compiled(pattern) for pattern in _listed(experts if experts is not None else default)]
        self._router = [compiled(pattern) for pattern in _listed(router)]
        self.all = [self._named(name, parameter) for name, parameter in model.named_parameters()]
        if self.experts_of_layer and not any(one.kind == "expert" for one in self.all):
            names = [one.name for one in self.all]
            raise InputError(f"experts: got {experts!r}, which matches no parameter; expected a part of the names of the experts' parameters, which "
                             f"are among {', '.join(names[:12])}{', …' if len(names) > 12 else ''}; for example \"mlp.experts.{{e}}\"")
        self.held = self._held()
        self._of: dict[tuple[str, int], list[int]] = {}  # (class, layer) -> parameters
        for index, one in enumerate(self.all):
            self._of.setdefault((one.kind, one.layer), []).append(index)
        # Parameters without a layer come before all layers if their name speaks of the embedding, otherwise after them.
        outside = [index for index, one in enumerate(self.all) if one.layer < 0 and one.kind not in ("embedding", "unembedding")]
        self._before = [index for index in outside if "embed" in self.all[index].name]
        self._after = [index for index in outside if index not in self._before]

    def _named(self, name: str, parameter: torch.nn.Parameter) -> Named:
        if type(parameter).__name__ == "DTensor" or type(parameter.data).__name__ == "DTensor":
            raise InputError(f"model: got {name}, which is sharded (a DTensor); expected whole parameters at one process for each site; for example "
                             "no FSDP inside a site")
        layer = layer_of(name)
        for pattern in self._experts:
            found = pattern.search(name)
            if not found:
                continue
            at = found.groupdict().get("layer")
            layer = int(at) if at is not None else layer
            expert = found.groupdict().get("e")
            number = re.match(r"\.(\d+)(?:\.|$)", found["rest"])
            if expert is None and number:
                expert = number[1]
            if expert is not None:
                return Named(name, parameter, "expert", layer, expert=int(expert))
            if parameter.dim() < 2:
                raise InputError(f"experts: got {name} of shape {list(parameter.shape)}; expected a number of the expert in the name, or a first "
                                 "dimension that counts the experts; for example \"mlp.experts.{e}\"")
            return Named(name, parameter, "expert", layer, dim=0)
        if self._one_layer:
            return Named(name, parameter, "attention", 0)
        if any(pattern.search(name) for pattern in self._router) or (not self._router and self._looks_like_router(name, parameter, layer)):
            return Named(name, parameter, "attention" if self.opaque else "router", layer, dim=self._router_dim(name, parameter, layer), routes=True)
        if _HEAD.search(name) and layer < 0:
            return Named(name, parameter, "unembedding" if self.with_head else "embedding")
        if _EMBEDDING.search(name) and parameter.dim() > 1 and layer < 0:
            return Named(name, parameter, "embedding")
        if _NORM.search(name):
            return Named(name, parameter, "norm", layer)
        return Named(name, parameter, "attention", layer)

    def _looks_like_router(self, name: str, parameter: torch.nn.Parameter, layer: int) -> bool:
        count = self.experts_of_layer.get(layer, 0)
        words = re.search(r"(^|\.)(router|gate|wg|mlp_router)(\.|$)", name)
        return count > 0 and words is not None and (count in parameter.shape or words[2] == "router")

    def _router_dim(self, name: str, parameter: torch.nn.Parameter, layer: int) -> int | None:
        """The dimension of the experts that the router scores; of two equal ones the first, as in torch.nn.Linear."""
        count = self.experts_of_layer.get(layer, 0)
        sizes = list(parameter.shape)
        if count in sizes:
            return sizes.index(count)
        smaller = [at for at, size in enumerate(sizes) if size < count]  # a router of the held experts only
        if len(smaller) != 1:
            raise InputError(f"router: got {name} of shape {sizes}; expected a dimension of the {count} experts that the scenario's model has in layer "
                             f"{layer}; for example model.experts = {min(sizes) if sizes else 0}")
        return smaller[0]

    def _held(self) -> bool:
        """Whether the model has only the experts that its node holds, in ascending order, instead of all experts of the plan."""
        found: dict[int, set[int]] = {}
        for one in self.all:
            if one.kind == "expert":
                found.setdefault(one.layer, set()).update([one.expert] if one.expert is not None else range(one.parameter.shape[0]))
        if set(found) != set(self.experts_of_layer):
            raise InputError(f"experts: got experts in layers {sorted(found)}; expected them in layers {sorted(self.experts_of_layer)}, as the scenario's "
                             "model has them; for example \"model.layers.{layer}.mlp.experts\"")
        fewer = {layer for layer, experts in found.items() if len(experts) < self.experts_of_layer[layer]}
        more = [layer for layer, experts in found.items() if len(experts) > self.experts_of_layer[layer]]
        self.experts_in_model = {layer: len(experts) for layer, experts in found.items()}
        if more:
            self._refuse_count(more[0])
        return bool(fewer)

    def _refuse_count(self, layer: int) -> None:
        got = self.experts_in_model[layer]
        raise InputError(f"experts: got {got} experts in layer {layer}; expected {self.experts_of_layer[layer]}, the number of the "
                         f"scenario's model, or in every layer those that the site holds; for example model.experts = {got}")

    def check_held(self, local: dict[int, list[int]]) -> None:
        """A model with only the held experts has them in every layer, where a site may hold more in one layer than in another."""
        for layer, got in self.experts_in_model.items():
            if got != len(local[layer]):
                self._refuse_count(layer)

    # ---- groups ----

    def _outside(self, kind: str, group: Group, layers: int, wanted: list[int]) -> list[Slice]:
        """Slices of parameters that belong to no layer, such as the final norm. They are one list, of which the plan gives the first half
        to the first layer and the rest to the last one (costmodel/plan/building_blocks.cpp): half of a norm if there is only one."""
        indices = self._before + self._after
        total = sum(self.all[index].parameter.numel() for index in indices)
        begin = 0 if group.layers[0] == 0 else total // 2
        end = total if group.layers[1] == layers else total // 2
        out, at = [], 0
        for index in indices:
            one, size = self.all[index], self.all[index].parameter.numel()
            first, last = max(begin - at, 0), min(end - at, size)
            at += size
            if first >= last or one.kind != kind or index not in wanted or (group.layers[0] > 0 and group.layers[1] < layers):
                continue
            if last - first < size and one.parameter.dim() != 1:
                raise InputError(f"model: got {one.name}, which belongs to no layer, and of which the plan sends {last - first} elements with the "
                                 f"{group.text()}; expected whole layers; for example strategy.fragments = 1")
            out.append(Slice(index) if last - first == size else Slice(index, 0, first, last))
        return out

    def slices(self, group: Group, layers: int, local: dict[int, list[int]] | None) -> list[Slice]:
        """The slices of a group. layers: number of layers of the plan. local: the experts by layer that a model with only the held
        experts has, in the order of its tensors. Raises InputError if the elements are not as many as the plan counts."""
        out: list[Slice] = []
        for kind in group.classes:
            if kind in ("embedding", "unembedding"):
                out += [Slice(index) for index in self._of.get((kind, -1), ())]
                continue
            out += self._outside(kind, group, layers, self._before)
            for layer in range(*group.layers):
                found = [self._slice(index, self.all[index], group, local) for index in self._of.get((kind, layer), ())]
                out += [part for part in found if part is not None]
            out += self._outside(kind, group, layers, self._after)
        elements = sum(part.of(self.all[part.index].parameter).numel() for part in out)
        names = [self.all[part.index].name for part in out]
        if elements != group.elements:
            shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
            if self.opaque:
                raise InputError(f"model: got {elements} elements in the model's {group.text()} ({shown or 'no parameters'}); expected {group.elements}: the scenario's "
                                 "shape only counts parameters, and takes them as equal layers without an embedding, so that this plan's parts of the layers are not "
                                 'the model\'s; for example strategy.fragments = 1 with strategy.method = "diloco"')
            raise InputError(f"model: got {elements} elements in the model's {group.text()} ({shown or 'no parameters'}); expected {group.elements}, which "
                             "the scenario's model has; for example model.shape = the file that fomoe.torch.shape(model, \"shape.json\") writes")
        return out

    def _slice(self, index: int, one: Named, group: Group, local: dict[int, list[int]] | None) -> Slice | None:
        if one.kind not in ("router", "expert") or not group.of_experts():
            return Slice(index)
        first, last = group.experts
        if local is not None:
            held = local[one.layer]
            if any(expert not in held for expert in range(first, last)):
                raise InputError(f"experts: got a model without expert {first} of layer {one.layer}; expected the experts {held} that the plan gives to this "
                                 "site; for example the whole model at every site")
            first, last = held.index(first), held.index(last - 1) + 1
        if one.expert is not None:
            return Slice(index) if first <= one.expert < last else None
        return Slice(index, one.dim, first, last)

    def expert_slices(self, layer: int, position: int, router_too: bool) -> list[Slice]:
        """The slices of one expert, by its position in the model's tensors."""
        out = []
        for index in self._of.get(("expert", layer), []) + (self._of.get(("router", layer), []) if router_too else []):
            one = self.all[index]
            if one.expert is None:
                out.append(Slice(index, one.dim, position, position + 1))
            elif one.expert == position:
                out.append(Slice(index))
        return out


def _listed(patterns: str | Iterable[str] | None) -> list[str]:
    return [] if patterns is None else [patterns] if isinstance(patterns, str) else list(patterns)


def local_experts(owners: Owners, node: int) -> dict[int, list[int]]:
    """Sorted ids of the experts that the node holds, by layer."""
    out: dict[int, list[int]] = {}
    for (layer, expert), nodes in sorted(owners.items()):
        out.setdefault(layer, [])
        if node in nodes:
            out[layer].append(expert)
    return out
