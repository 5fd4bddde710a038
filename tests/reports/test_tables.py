import csv
import io

import pytest

from vaeiw_jax.reports.pages import TEMPLATES
from vaeiw_jax.reports.tables import Cell, Column, Table


@pytest.fixture
def table():
    return Table(
        [Column("game", text=True), Column("score", "ours", ",.1f"), Column("won | lost")],
        [
            ["Pong", 1234.56, Cell("3 / 4", 3, strong=True)],
            [Cell("<b>Alien</b>", "Alien", link="#game-Alien"), None, Cell("*")],
        ],
        title="Scores",
        footer=[["> human", 1, None]],
        notes=["a < b"],
    )


def html(table):
    return TEMPLATES.get_template("macros.html").module.table(table)


def test_numbers_are_formatted_as_their_column_says_and_sorted_by_their_value(table):
    assert '<td class="" data-value="1234.56">1,234.6</td>' in html(table)
    assert "| Pong | 1,234.6 | **3 / 4** |" in table.to_markdown()


def test_an_empty_cell_has_no_value_to_sort_by(table):
    assert '<td class=""></td>' in html(table)


def test_html_is_escaped(table):
    page = html(table)
    assert '<a href="#game-Alien">&lt;b&gt;Alien&lt;/b&gt;</a>' in page
    assert "<b>" not in page
    assert "a &lt; b" in page


def test_headings_say_how_they_are_aligned_and_sorted(table):
    page = html(table)
    assert '<th scope="col" class="text"><button type="button">game</button></th>' in page
    assert '<button type="button">score<small>ours</small></button>' in page
    assert "<thead>" not in html(Table([Column(""), Column("")], [["a", 1]]))


def test_emphasis_links_and_highlights(table):
    assert "<strong>3 / 4</strong>" in html(table)
    ours = Table([Column("a", highlighted=True), Column("b", text=True, long=True)], [[1, "x"]])
    assert 'class="highlighted"' in html(ours)
    assert 'class="text long "' in html(ours)


def test_markdown_has_notes_a_footer_and_no_markup_of_its_own(table):
    assert table.to_markdown().splitlines() == [
        "| game | score (ours) | won \\| lost |",
        "| --- | ---: | ---: |",
        "| Pong | 1,234.6 | **3 / 4** |",
        "| \\<b>Alien\\</b> |  | \\* |",
        "| *> human* | 1.0 |  |",
        "",
        "a \\< b",
    ]


def test_csv_has_the_values_and_not_the_texts(table):
    rows = list(csv.reader(io.StringIO(table.to_csv())))
    assert rows == [["game", "score", "won | lost"], ["Pong", "1234.56", "3"], ["Alien", "", ""]]


def test_a_row_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="zip"):
        list(Table([Column("a"), Column("b")], [["x"]]).body())
