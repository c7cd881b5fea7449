# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Vector addition as hand-written PTX and as a manifest's kernel, for tests that need no compiler."""

TYPES = ["*fp32", "*fp32", "*fp32", "i32"]


def vector_add_ptx(target="sm_80"):
    """z[i] = x[i] + y[i] for i < n, one element a thread."""
    return f""".version 8.0
.target {target}
.address_size 64

.visible .entry add(.param .u64 x, .param .u64 y, .param .u64 z, .param .u32 n)
{{
  .reg .pred %p<2>;
  .reg .f32 %f<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u64 %rd3, [z];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.s32 %rd4, %r5, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5];
  ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%rd7], %f3;
DONE:
  ret;
}}
"""


def vector_add_kernel(targets=("sm_90a", "sm_80")):
    """The kernel as a manifest has it; four warps, one element a thread."""
    return {
        "name": "add",
        "arguments": [{"name": name, "type": kind} for name, kind in zip("xyzn", TYPES, strict=True)],
        "variants": [
            {
                "target": target,
                "ptx": f"add.{target}.ptx",
                "entry": "add",
                "num_warps": 4,
                "shared_bytes": 0,
                "constants": {"BLOCK": 128},
                "grid": ["cdiv(n, BLOCK)", "1", "1"],
            }
            for target in targets
        ],
    }


def write_vector_add(path, targets=("sm_90a", "sm_80")):
    """A library with this one kernel."""
    import weft.runtime

    files = {f"add.{target}.ptx": vector_add_ptx(target) for target in targets}
    weft.runtime.write_library(path, [vector_add_kernel(targets)], files)
