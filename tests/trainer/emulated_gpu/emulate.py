#!/usr/bin/env python3
"""Translates trainer/kernels into C++ that runs on emulated_gpu.hpp: emulate.py TRAINER/KERNELS OUT

OUT/emulated/kernels/ gets every file of the folder, in namespace fomoe::emulated instead of fomoe::trainer. The translated code
treats all tensors as a GPU's tensors, and launches kernels with emulated_gpu::launch.
"""

import pathlib
import re
import sys


def launches(text, source):
    """Translates kernel<<<blocks, threads, shared, stream>>>(arguments); into calls of emulated_gpu::launch."""
    text, found = re.subn(
        r"(?P<kernel>\w+(?:<[^<>;]*>)?)\s*<<<(?P<blocks>.+?), (?P<threads>\w+), (?P<shared>.+?), stream>>>\((?P<arguments>.*?)\);",
        r"{ emulated_gpu::launch(reinterpret_cast<const void*>(\g<kernel>), \g<blocks>, \g<threads>, \g<shared>, "
        r"[&] { \g<kernel>(\g<arguments>); }); (void)stream; }", text, flags=re.DOTALL)
    if "<<<" in text or found == 0:
        sys.exit(f"emulate.py: {source}: got a launch that is not kernel<<<blocks, threads, shared, stream>>>(arguments);")
    return text


def emulated(source):
    text = source.read_text()
    if source.suffix == ".cu":
        text = '#include "tests/trainer/emulated_gpu/emulated_gpu.hpp"\n' + launches(text, source)
        text = re.sub(r"extern __shared__ ([\w:]+) (\w+)\[\];", r"\1* const \2 = static_cast<\1*>(emulated_gpu::shared_memory());", text)
    text = re.sub(r"\b\w+\.is_cuda\(\)", "true", text)
    text = re.sub(r"const c10::cuda::CUDAGuard \w+\(.*?\);", "", text)
    text = text.replace("at::cuda::getCurrentCUDAStream()", "nullptr")
    if "C10_CUDA_CHECK" in text:
        text = '#include "tests/trainer/emulated_gpu/check.hpp"\n' + text.replace("C10_CUDA_CHECK(", "emulated_gpu::check(")
    text = text.replace('#include "trainer/kernels/', '#include "emulated/kernels/')
    if ".is_cuda(" in text:
        sys.exit(f"emulate.py: {source}: got an is_cuda() that is not of a plain name; here it would be false")
    if source.name == "team.hpp":  # this file reads and writes packs
        text = '#include "tests/trainer/emulated_gpu/check.hpp"\n' + text.replace(
            "  return *reinterpret_cast<const Pack", "  emulated_gpu::must_be_aligned(from, alignof(Pack<T, W>));\n  return *reinterpret_cast<const Pack"
        ).replace("  *reinterpret_cast<Pack", "  emulated_gpu::must_be_aligned(to, alignof(Pack<T, W>));\n  *reinterpret_cast<Pack")
        if text.count("must_be_aligned") != 2:
            sys.exit(f"emulate.py: {source}: expected one load and one store")
    # Names that the kernels' files do not define come from fomoe::trainer.
    return text.replace("namespace fomoe::trainer {", "namespace fomoe::trainer {}\nnamespace fomoe::emulated {\nusing namespace fomoe::trainer;", 1)


def main():
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]) / "emulated/kernels"
    for source in sorted(path for path in folder.rglob("*") if path.is_file()):
        relative = source.relative_to(folder)
        target = out / relative.with_name(source.name + (".cpp" if source.suffix == ".cu" else ""))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(emulated(source))


if __name__ == "__main__":
    main()
