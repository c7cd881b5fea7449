# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The types of values in a kernel: scalars (``float16``, ``int32``, ...), pointers to them, and blocks of either."""

from __future__ import annotations

import enum
import functools
import struct
from collections.abc import Iterable
from typing import Any


class Kind(enum.IntEnum):
    """The order in which kinds of numbers win over each other when they meet."""

    BOOLEAN = 0
    INTEGRAL = 1
    FLOATING = 2


# name: (bits, kind, signed, MLIR's spelling, mantissa bits)
_SCALARS: dict[str, tuple[int, Kind, bool, str, int]] = {
    "int1": (1, Kind.BOOLEAN, False, "i1", 0),
    **{f"int{bits}": (bits, Kind.INTEGRAL, True, f"i{bits}", 0) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (bits, Kind.INTEGRAL, False, f"i{bits}", 0) for bits in (8, 16, 32, 64)},
    "fp8e4nv": (8, Kind.FLOATING, True, "f8E4M3FN", 3),
    "fp8e4b15": (8, Kind.FLOATING, True, "i8", 3),  # its bits: MLIR has no such type
    "fp8e5": (8, Kind.FLOATING, True, "f8E5M2", 2),
    "fp16": (16, Kind.FLOATING, True, "f16", 10),
    "bf16": (16, Kind.FLOATING, True, "bf16", 7),
    "fp32": (32, Kind.FLOATING, True, "f32", 23),
    "fp64": (64, Kind.FLOATING, True, "f64", 52),
}


class dtype:
    """The type of one number. The instances are the module's constants; ``str(float16)`` is ``"fp16"``."""

    __slots__ = ("_kind", "_signed", "fp_mantissa_width", "mlir", "name", "primitive_bitwidth")

    #: names of types by kind
    SINT_TYPES = tuple(name for name, known in _SCALARS.items() if known[2] and known[1] is Kind.INTEGRAL)
    UINT_TYPES = tuple(name for name, known in _SCALARS.items() if not known[2])
    FP_TYPES = tuple(name for name, known in _SCALARS.items() if known[1] is Kind.FLOATING)
    STANDARD_FP_TYPES = tuple(name for name in FP_TYPES if not name.startswith("fp8"))

    def __init__(self, name: str):
        if name not in _SCALARS:
            raise ValueError(f"expected one of {', '.join(_SCALARS)}, but got {name!r}")
        self.name = name
        self.primitive_bitwidth, self._kind, self._signed, self.mlir, self.fp_mantissa_width = _SCALARS[name]

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is type(self) and other.name == self.name)

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> Any:
        return dtype, (self.name,)

    def __weft_reads__(self, reads: Any) -> Any:
        return str(self)

    @property
    def scalar(self) -> dtype:
        """The type of one element: this one. A block type has its element type here."""
        return self

    @property
    def element_ty(self) -> dtype:
        """The type of one element: this one. A pointer type has here what it points to."""
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of a value: none, as it is one number."""
        return ()

    @property
    def itemsize(self) -> int:
        """Bytes that one value takes in memory."""
        return max(1, self.primitive_bitwidth // 8)

    @property
    def exponent_bias(self) -> int:
        """Of a floating-point type: what is added to the exponent of a normal number to make its bits."""
        if self.name == "fp8e4b15":
            return 15
        return (1 << (self.primitive_bitwidth - self.fp_mantissa_width - 2)) - 1

    @property
    def int_bitwidth(self) -> int:
        """How many bits one value has; an ``int1`` has 1, though it takes a byte in memory."""
        return self.primitive_bitwidth

    def kind(self) -> Kind:
        """Boolean, integral or floating: the order in which types give way to each other."""
        return self._kind

    def is_floating(self) -> bool:
        """Whether this is a floating-point type, those of 8 bits among them."""
        return self._kind is Kind.FLOATING

    def is_standard_floating(self) -> bool:
        """Whether this is a floating-point type of at least 16 bits."""
        return self.is_floating() and not self.is_fp8()

    def is_int(self) -> bool:
        """Whether this is an integer type; ``int1`` is one."""
        return self._kind is not Kind.FLOATING

    def is_int_signed(self) -> bool:
        """Whether this is a signed integer type."""
        return self.is_int() and self._signed

    def is_int_unsigned(self) -> bool:
        """Whether this is an unsigned integer type; ``int1`` is one."""
        return self.is_int() and not self._signed

    def is_bool(self) -> bool:
        """Whether this is ``int1``, the type of truths."""
        return self.name == "int1"

    is_int1 = is_bool

    def is_fp8(self) -> bool:
        """Whether this is one of the floating-point types of 8 bits."""
        return self.is_floating() and self.primitive_bitwidth == 8

    def is_fp8e4nv(self) -> bool:
        """Whether this is ``float8e4nv``."""
        return self.name == "fp8e4nv"

    def is_fp8e4b15(self) -> bool:
        """Whether this is ``float8e4b15``."""
        return self.name == "fp8e4b15"

    def is_fp8e5(self) -> bool:
        """Whether this is ``float8e5``."""
        return self.name == "fp8e5"

    def is_fp16(self) -> bool:
        """Whether this is ``float16``."""
        return self.name == "fp16"

    def is_bf16(self) -> bool:
        """Whether this is ``bfloat16``."""
        return self.name == "bf16"

    def is_fp32(self) -> bool:
        """Whether this is ``float32``."""
        return self.name == "fp32"

    def is_fp64(self) -> bool:
        """Whether this is ``float64``."""
        return self.name == "fp64"

    def is_int8(self) -> bool:
        """Whether this is ``int8``."""
        return self.name == "int8"

    def is_int16(self) -> bool:
        """Whether this is ``int16``."""
        return self.name == "int16"

    def is_int32(self) -> bool:
        """Whether this is ``int32``."""
        return self.name == "int32"

    def is_int64(self) -> bool:
        """Whether this is ``int64``."""
        return self.name == "int64"

    def is_uint8(self) -> bool:
        """Whether this is ``uint8``."""
        return self.name == "uint8"

    def is_uint16(self) -> bool:
        """Whether this is ``uint16``."""
        return self.name == "uint16"

    def is_uint32(self) -> bool:
        """Whether this is ``uint32``."""
        return self.name == "uint32"

    def is_uint64(self) -> bool:
        """Whether this is ``uint64``."""
        return self.name == "uint64"

    def is_ptr(self) -> bool:
        """Whether this is a pointer type."""
        return False

    def is_const(self) -> bool:
        """Whether this is a type of pointers that nothing may be stored through."""
        return False

    def is_block(self) -> bool:
        """Whether this is the type of a block."""
        return False

    def get_int_max_value(self) -> int:
        """The largest integer of this type."""
        return 2 ** (self.primitive_bitwidth - self._signed) - 1

    def get_int_min_value(self) -> int:
        """The smallest integer of this type."""
        return -(2 ** (self.primitive_bitwidth - 1)) if self._signed else 0

    def with_shape(self, shape: Iterable[int]) -> Any:
        """A block of this type, or the type itself for the shape ``()``."""
        return _with_shape(self, tuple(shape))


def e4b15_bits(value: float) -> int:
    """A number's bits as ``float8e4b15``, as the conversion of a float32 gives them (weft.language.e4b15)."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    sign, size = bits >> 31, bits & 0x7FFFFFFF
    if size >= 0x3FE00000:  # 1.75, infinities and NaNs
        half = 0x3F00
    elif size >= 0x38800000:  # normal numbers of float16: exponents by 112 less, ten bits of mantissa kept
        half = (size >> 13) - (112 << 10)
    else:  # multiples of 2^-24, toward zero
        half = int(abs(struct.unpack("<f", struct.pack("<f", value))[0]) * 2.0**24)
    return sign << 7 | (half + 0x40) >> 7


class pointer_type(dtype):
    """The address in device memory of values of ``element_ty``."""

    __slots__ = ("_element_ty", "const")

    def __init__(self, element_ty: dtype, const: bool = False):
        self.name = f"{'const_' if const else ''}pointer<{element_ty}>"  # by which types are told apart
        self._element_ty = element_ty
        self.const = const
        self.primitive_bitwidth = 64
        self._kind, self._signed, self.fp_mantissa_width = Kind.INTEGRAL, False, 0
        # Memory holds a bool in a byte.
        self.mlir = f"!tile.ptr<{'i8' if element_ty.is_bool() else element_ty.mlir}>"

    def __reduce__(self) -> Any:
        return pointer_type, (self._element_ty, self.const)

    @property
    def element_ty(self) -> dtype:
        return self._element_ty

    def is_ptr(self) -> bool:
        return True

    def is_const(self) -> bool:
        return self.const

    def is_int(self) -> bool:
        return False


class block_type:
    """A block: a tensor of static shape, held by one program."""

    __slots__ = ("_hash", "element_ty", "mlir", "shape")

    def __init__(self, element_ty: dtype, shape: Iterable[int]):
        self.element_ty = element_ty
        self.shape = tuple(shape)
        self.mlir = f"tensor<{'x'.join(map(str, self.shape))}x{element_ty.mlir}>"
        self._hash = hash((element_ty, self.shape))

    def __repr__(self) -> str:
        return f"<[{', '.join(map(str, self.shape))}], {self.element_ty}>"

    def __eq__(self, other: object) -> bool:
        return type(other) is block_type and other.shape == self.shape and other.element_ty == self.element_ty

    def __hash__(self) -> int:
        return self._hash

    @property
    def scalar(self) -> dtype:
        """The type of one element."""
        return self.element_ty

    @property
    def numel(self) -> int:
        """How many elements a block has."""
        return functools.reduce(lambda a, b: a * b, self.shape, 1)

    def get_block_shapes(self) -> tuple[int, ...]:
        """The sizes; as ``shape``."""
        return self.shape

    def is_block(self) -> bool:
        """True."""
        return True

    def is_ptr(self) -> bool:
        """False: a block of pointers is a block."""
        return False

    def is_floating(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return self.element_ty.is_floating()

    def is_int(self) -> bool:
        """Whether the elements are integers."""
        return self.element_ty.is_int()


@functools.lru_cache(maxsize=4096)
def _with_shape(element: dtype, shape: tuple[int, ...]) -> Any:
    return block_type(element, shape) if shape else element


int1 = dtype("int1")
int8, int16, int32, int64 = (dtype(f"int{bits}") for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
float8e4nv, float8e4b15, float8e5 = dtype("fp8e4nv"), dtype("fp8e4b15"), dtype("fp8e5")
float16, bfloat16, float32, float64 = dtype("fp16"), dtype("bf16"), dtype("fp32"), dtype("fp64")
pi32_t = pointer_type(int32)

ALL_SCALARS = (
    int1,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float8e4nv,
    float8e4b15,
    float8e5,
    float16,
    bfloat16,
    float32,
    float64,
)


def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integer type of a width of 1, 8, 16, 32 or 64 bits."""
    return int1 if bitwidth == 1 else dtype(f"{'' if signed else 'u'}int{bitwidth}")


def describe(value_type: Any) -> str:
    """A type as error messages write it: ``fp16`` for a scalar, ``fp16[64, 32]`` for a block."""
    if isinstance(value_type, block_type):
        return f"{value_type.element_ty}[{', '.join(map(str, value_type.shape))}]"
    return str(value_type)


class constexpr:
    """A value known when the kernel is compiled.

    As an annotation of a parameter or a variable it asks for one (``BLOCK: wl.constexpr``); as a wrapper it lets
    kernels read a global
    (``LIMIT = wl.constexpr(8)``).
    """

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value: Any = value.value if isinstance(value, constexpr) else value

    def __repr__(self) -> str:
        return f"constexpr[{self.value!r}]"

    def __eq__(self, other: object) -> Any:
        return self.value == unwrap(other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __weft_reads__(self, reads: Any) -> Any:
        return reads.attribute(self, "value")

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return self.value.__index__()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value(*args, **kwargs)


def unwrap(value: Any) -> Any:
    """The value inside a constexpr; any other value itself."""
    return value.value if isinstance(value, constexpr) else value


def _forward(name: str) -> Any:
    def operator(self: constexpr, *others: Any) -> Any:
        result = getattr(self.value, name)(*(unwrap(other) for other in others))
        return result if result is NotImplemented else constexpr(result)

    operator.__name__ = name
    return operator


for _operator in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    for _form in (f"__{_operator}__", f"__r{_operator}__"):
        setattr(constexpr, _form, _forward(_form))
for _operator in ("lt", "le", "gt", "ge", "neg", "pos", "invert"):
    setattr(constexpr, f"__{_operator}__", _forward(f"__{_operator}__"))
