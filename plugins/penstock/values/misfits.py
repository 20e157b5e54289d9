"""What a typed column cannot hold is a misfit: the column is NULL, and the exact text stands in this column of the table.

Because a cast gives NULL for nothing but NULL and misfits, one rule is enough for all types.
"""

MISFITS_COLUMN = "_misfits"
