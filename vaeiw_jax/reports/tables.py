"""The one table type: rows of values that become HTML in a template, Markdown, or CSV."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Value = float | str | None


@dataclass(frozen=True)
class Column:
    """A title, and how the values below it are shown."""

    title: str
    note: str = ""
    """A line below the title."""
    format: str = ","
    """Of numbers, as `format` takes it."""
    text: bool = False
    """Aligned to the left, and sorted as words."""
    long: bool = False
    """Text that may be broken into lines."""
    highlighted: bool = False


@dataclass(frozen=True)
class Cell:
    """What is shown, where that is not just the value, and the value the table is sorted by."""

    text: str
    value: Value = None
    strong: bool = False
    link: str = ""


@dataclass(frozen=True)
class Table:
    """Values, or cells, in rows; None is an empty cell."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Value | Cell]]
    title: str = ""
    footer: Sequence[Sequence[Value]] = ()
    """Rows that stay below when the others are sorted."""
    notes: Sequence[str] = ()

    def body(self) -> Iterator[list[Cell]]:
        return map(self._cells, self.rows)

    def foot(self) -> Iterator[list[Cell]]:
        return map(self._cells, self.footer)

    def _cells(self, row: Sequence[Value | Cell]) -> list[Cell]:
        return [_cell(value, column) for value, column in zip(row, self.columns, strict=True)]

    def to_markdown(self) -> str:
        """The table and, below it, its notes."""
        titles = [f"{c.title} ({c.note})" if c.note else c.title for c in self.columns]
        lines = [map(_escaped, titles), ["---" if c.text else "---:" for c in self.columns]]
        lines += [map(_markdown, row) for row in self.body()]
        for first, *others in self.foot():
            lines.append([f"*{_escaped(first.text)}*", *map(_markdown, others)])
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join([table, *map(_escaped, self.notes)])

    def to_csv(self) -> str:
        """The values, unformatted."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(column.title for column in self.columns)
        for row in self.rows:
            writer.writerow(value.value if isinstance(value, Cell) else value for value in row)
        return out.getvalue()


def _cell(value: Value | Cell, column: Column) -> Cell:
    if isinstance(value, Cell):
        return value
    if value is None or isinstance(value, str):
        return Cell(value or "", value)
    return Cell(format(value, column.format), value)


def _markdown(cell: Cell) -> str:
    text = _escaped(cell.text)
    return f"**{text}**" if cell.strong else text


def _escaped(text: str) -> str:
    return re.sub(r"([*|<`\\])", r"\\\1", text).replace("\n", " ")
