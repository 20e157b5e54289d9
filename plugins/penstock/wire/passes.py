"""The compiled loops of the columnar decoder: plain Python over NumPy arrays, made machine code by numba.

`scan` walks every message of a batch once, checks each byte that has a meaning, and notes for every change where its
tuples start; it stops at the first message that it does not accept. `group` puts the rows of each relation together.
`gather` walks the tuples of one relation again, now known to be whole, and copies each column's bytes into one Arrow
string array. All are O(bytes), none holds the GIL. Every compiled function stands in this one file, because numba's
cache notices a change of the file that a function is in, not of those that it calls.
"""

# mypy: disable-error-code="assignment,no-any-return"

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit, types
from numba.core.cgutils import raw_memcpy
from numba.extending import intrinsic

from penstock.wire import machine_code
from penstock.wire.arrays import (
    NONE,
    Bytes,
    Catalogue,
    Controls,
    Gathered,
    Int32s,
    Int64s,
    Progress,
    Rows,
    Sizes,
    Transactions,
)

machine_code.keep()

Number = Any  # np.int64 or np.uint8 once compiled
Function = TypeVar("Function", bound=Callable[..., Any])

BEGIN, COMMIT, ORIGIN, RELATION, TYPE, MESSAGE = (ord(tag) for tag in "BCORYM")
INSERT, UPDATE, DELETE, TRUNCATE = (ord(tag) for tag in "IUDT")
NEW, OLD_KEY, OLD_ROW = (ord(marker) for marker in "NKO")
NULL, UNCHANGED, TEXT = (ord(kind) for kind in "nut")
REFUSED = -2  # instead of a position or a count


def _compiled(function: Function) -> Function:
    """Compile on first call and keep the machine code on disk, where there is a place for it.

    numba looks at the folder of `machine_code`, the package's and the user's cache folder, and raises when none is writable;
    then every process compiles for itself (seconds) rather than trust a folder that others can write to.
    """
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)


def _inlined(function: Function) -> Function:
    """Compile as a part of whatever calls it: twice as fast here as a call that hands over arrays."""
    return njit(forceinline=True)(function)


@intrinsic
def _copy(_: Any, target: Any, target_at: Any, source: Any, source_at: Any, size: Any) -> Any:  # noqa: ARG001  (numba reads them)
    """Copy `size` bytes between arrays of bytes that do not overlap: `memcpy`, five times as fast as a loop."""

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into, into_at, out_of, out_of_at, count = arguments
        into = context.make_array(signature.args[0])(context, builder, into)
        out_of = context.make_array(signature.args[2])(context, builder, out_of)
        ends = builder.gep(into.data, [into_at]), builder.gep(out_of.data, [out_of_at])
        raw_memcpy(builder, *ends, count, 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), write


@_inlined
def _int16(data: Bytes, at: Number) -> Number:
    return (np.int64(data[at]) << 8) | np.int64(data[at + 1])


@_inlined
def _int32(data: Bytes, at: Number) -> Number:
    return (_int16(data, at) << 16) | _int16(data, at + 2)


@_inlined
def _int64(data: Bytes, at: Number) -> Number:
    return (_int32(data, at) << 32) | _int32(data, at + 4)


@_inlined
def _version(catalogue: Catalogue, oid: Number) -> Number:
    """Return the version that a relation has at this place of the stream, NONE before its RELATION message."""
    slot = np.searchsorted(catalogue.oids, oid)
    if slot == len(catalogue.oids) or catalogue.oids[slot] != oid:
        return np.int64(NONE)
    return np.int64(catalogue.current[slot])


@_inlined
def _walk(
    data: Bytes, at: Number, end: Number, version: Number, catalogue: Catalogue, lengths: Int64s, unchanged: Int64s
) -> Number:
    """Return the position after the TupleData at `at`, or REFUSED.

    Adds the columns' lengths to `lengths` and the cells of unchanged TOAST to `unchanged`, which is empty for an old
    tuple: the server puts TOASTed values into WAL there.
    """
    width = catalogue.width[version]
    first = catalogue.first[version]
    if end - at < 2 or _int16(data, at) != width:
        return REFUSED
    at += 2
    for column in range(first, first + width):
        if at >= end:
            return REFUSED
        kind = data[at]
        at += 1
        if kind == TEXT:
            if end - at < 4:
                return REFUSED
            size = _int32(data, at)
            at += 4
            if size > end - at:
                return REFUSED
            lengths[column] += size
            at += size
        elif kind == UNCHANGED and len(unchanged):
            unchanged[version] += 1
        elif kind != NULL:
            return REFUSED
    return at


@_inlined
def _change(
    data: Bytes, at: Number, end: Number, tag: Number, version: Number, catalogue: Catalogue, sizes: Sizes
) -> tuple[Number, Number, Number, Number]:
    """Walk what follows the relation's oid in I, U or D; return (position after it, new, old, kind of old)."""
    new = old = np.int64(NONE)
    old_kind = np.uint8(0)
    marker = data[at]
    at += 1
    if tag != INSERT and marker in (OLD_KEY, OLD_ROW):
        old, old_kind = at + 2, marker
        at = _walk(data, at, end, version, catalogue, sizes.old, sizes.unchanged[:0])
        if at == REFUSED or tag == DELETE:
            return at, new, old, old_kind
        if at >= end:
            return REFUSED, new, old, old_kind
        marker = data[at]
        at += 1
    if tag == DELETE or marker != NEW:
        return REFUSED, new, old, old_kind
    new = at + 2
    at = _walk(data, at, end, version, catalogue, sizes.new, sizes.unchanged)
    return at, new, old, old_kind


@_inlined
def _emit(
    rows: Rows,
    sizes: Sizes,
    row: Number,
    change: tuple[Number, Number, Number],
    new: Number,
    old: Number,
    old_kind: Number,
) -> None:
    """Note a row: a change is its tag, its relation's version and its transaction; the others say where its tuples are."""
    rows.op[row], rows.version[row], rows.transaction[row] = change
    rows.new[row] = new
    rows.old[row] = old
    rows.old_kind[row] = old_kind
    sizes.rows[change[1]] += 1


@_inlined
def _truncate(
    data: Bytes,
    at: Number,
    end: Number,
    catalogue: Catalogue,
    rows: Rows,
    sizes: Sizes,
    row: Number,
    transaction: Number,
) -> Number:
    """Read T and note rows from `row` on, one per relation, none where it is NONE; return how many relations it names, or REFUSED."""
    if end - at < 5 or data[at + 4] > 3 or end - at - 5 != 4 * _int32(data, at):
        return REFUSED
    count = _int32(data, at)
    for number in range(count):
        version = _version(catalogue, _int32(data, at + 5 + 4 * number))
        if version == NONE:
            return REFUSED
        if row != NONE:
            _emit(rows, sizes, row + number, (TRUNCATE, version, transaction), NONE, NONE, 0)
    return count


@_inlined
def _begin(data: Bytes, at: Number, end: Number, transactions: Transactions, number: Number) -> bool:
    """Read B; return whether it is whole and its LSN fits the landing column (below 2^63)."""
    if end - at != 20 or data[at] >= 128:
        return False
    transactions.final_lsn[number] = _int64(data, at)
    transactions.commit_time[number] = _int64(data, at + 8)
    transactions.xid[number] = _int32(data, at + 16)
    transactions.origin[number] = NONE
    return True


@_inlined
def _is_commit(data: Bytes, at: Number, end: Number, final_lsn: Number) -> bool:
    """Return whether C is whole and commits what BEGIN announced."""
    return end - at == 25 and data[at] == 0 and _int64(data, at + 1) == final_lsn


@_inlined
def _control_fits(tag: Number, value: Number, opened: Number, just_opened: Number) -> bool:
    """Return whether R, Y, O or M (value: 1 if transactional) may stand here."""
    if tag == MESSAGE:
        return bool(value == opened)
    return bool(opened and (tag != ORIGIN or just_opened))


@_compiled
def scan(  # noqa: PLR0912, PLR0915  (one loop over the grammar; to cut it up would hide its state)
    data: Bytes,
    offsets: Int32s,
    controls: Controls,
    catalogue: Catalogue,
    transactions: Transactions,
    rows: Rows,
    sizes: Sizes,
    before: Progress,
) -> Progress:
    """Check a batch of messages, none of them empty, and note where its changes are.

    `data` and `offsets` are an Arrow binary array's; `before` is the Progress that the last batch ended with;
    `catalogue.current`, `transactions`, `rows` and `sizes` are written. Returns the new Progress, whose `refused` is the
    number of the first message that is cut, too long, unknown or out of sequence.
    """
    opened, just_opened, skipping, _, ended, _ = before
    transaction = begun = control = row = np.int64(0)
    known_oid = version = np.int64(NONE)
    for index in range(len(offsets) - 1):
        at = np.int64(offsets[index])
        end = np.int64(offsets[index + 1])
        tag = data[at]
        at += 1
        if tag in (INSERT, UPDATE, DELETE):
            if not opened or end - at < 5:
                break
            oid = _int32(data, at)
            if oid != known_oid:
                known_oid, version = oid, _version(catalogue, oid)
            if version == NONE:
                break
            at, new, old, old_kind = _change(data, at + 4, end, tag, version, catalogue, sizes)
            if at != end:
                break
            if not skipping:
                _emit(rows, sizes, row, (tag, version, transaction), new, old, old_kind)
                row += 1
        elif tag == BEGIN:
            begun += 1
            if opened or not _begin(data, at, end, transactions, begun):
                break
            opened, transaction = 1, begun
        elif tag == COMMIT:
            if not opened or not _is_commit(data, at, end, transactions.final_lsn[transaction]):
                break
            ended += 1
            opened = skipping = 0
        elif tag == TRUNCATE:
            if not opened:
                break
            count = _truncate(data, at, end, catalogue, rows, sizes, NONE if skipping else row, transaction)
            if count == REFUSED:
                break
            row += count * (1 - skipping)
        elif tag in (RELATION, TYPE, ORIGIN, MESSAGE):
            value = controls.value[control]
            if not _control_fits(tag, value, opened, just_opened):
                break
            if tag == RELATION:
                catalogue.current[controls.slot[control]] = value
                known_oid = np.int64(NONE)
            elif tag == ORIGIN:
                transactions.origin[transaction] = value
                skipping = np.int64(controls.skip[control])
            control += 1
        else:
            break
        just_opened = np.int64(tag == BEGIN)
    else:
        index = NONE
    return Progress(opened, just_opened, skipping, row, ended, index)  # type: ignore[arg-type]


@_compiled
def group(versions: Int32s, counts: Int64s) -> Int64s:
    """Return the row numbers ordered by version, in stream order within a version (a counting sort)."""
    following = np.cumsum(counts) - counts
    order = np.empty(len(versions), np.int64)
    for row in range(len(versions)):
        version = versions[row]
        order[following[version]] = row
        following[version] += 1
    return order


@_compiled
def gather(data: Bytes, starts: Int64s, into: Gathered) -> None:
    """Copy the tuples that start at `starts` (NONE: no tuple) into string columns; `scan` has checked every bound."""
    width = len(into.base)
    filled = np.zeros(width, np.int64)
    seen = 0
    for row in range(len(starts)):
        at = starts[row]
        present = at != NONE
        for column in range(width):
            kind = data[at] if present else np.uint8(NULL)
            at += 1
            if kind == TEXT:
                size = _int32(data, at)
                at += 4
                _copy(into.values, into.base[column] + filled[column], data, at, size)
                at += size
                filled[column] += size
                into.validity[column, row >> 3] |= np.uint8(1 << (row & 7))
            elif kind == UNCHANGED:
                into.unchanged[seen] = column
                seen += 1
            into.offsets[column, row + 1] = filled[column]
        into.unchanged_offsets[row + 1] = seen
