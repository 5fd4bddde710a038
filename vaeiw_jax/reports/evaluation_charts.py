"""The charts of an experiment: games down the page, so that they can be read on a phone, but for one overview."""

from collections.abc import Mapping
from typing import Any

from matplotlib.colors import to_rgba

from vaeiw_jax.experiments import paper
from vaeiw_jax.experiments.evaluation_results import ExperimentResults
from vaeiw_jax.experiments.methods import Method
from vaeiw_jax.features.config import TRUE
from vaeiw_jax.reports import charts, score_statistics
from vaeiw_jax.reports import evaluation_summary as summary
from vaeiw_jax.reports.charts import LIGHT, SERIES, Chart
from vaeiw_jax.reports.pages import plural
from vaeiw_jax.reports.score_statistics import Interval

MOST_METHODS = 6
"""More methods than these could not be told apart in a chart of games."""

HUMAN_SCALE: Any = {"value": "symlog", "linthresh": 100, "linscale": 1.5}
HUMAN_LABEL = "0%: random play, 100%: human\n(linear up to 100%, logarithmic beyond)"
HUMAN_LINE: Any = {"color": LIGHT.ink, "linewidth": 0.8, "linestyle": (0, (4, 3)), "zorder": 3}


def draw(results: ExperimentResults, compare: bool) -> list[Chart]:
    """The charts of an experiment, as far as there is something to draw."""
    if not any(results.means(method.name) for method in results.experiment.methods):
        return []
    expanded, longest = "expanded nodes a decision", "longest rollout of a decision"
    candidates = (
        normalised_scores(results, compare),
        _interquartile_means(results),
        _game_statistic(results, "mean_expanded_nodes", expanded, "Figure 2"),
        _game_statistic(results, "mean_max_rollout_length", longest, "Figure 3"),
        _correlation(results),
        _budget_curve(results),
    )
    return [chart for chart in candidates if chart is not None]


@charts.styled
def normalised_scores(results: ExperimentResults, compare: bool) -> Chart | None:
    """The paper's Figure 1: percent of the way from random play to a human."""
    experiment, last = results.experiment, results.experiment.methods[-1]
    bars, colours = _normalised(results)
    percents = next(reversed(bars.values()), {})
    if len(bars) > MOST_METHODS or not percents:
        return None
    ours = [each for each in experiment.methods if each.name in experiment.paper_columns]
    if compare and experiment.paper_table and ours and ours[-1].title in bars:
        column = experiment.paper_columns[ours[-1].name]
        printed = paper.table(experiment.paper_table).scores[column]
        same_games = {game: printed[game] for game in percents if game in printed}
        colour = colours[[*bars].index(ours[-1].title)]
        bars[f"{ours[-1].title} in the paper"] = summary.normalised(same_games)
        colours.append(to_rgba(colour, 0.4))
    axes, games = charts.by_game(bars, percents, colours)
    axes.axvline(100, **HUMAN_LINE)
    axes.set_xscale(**HUMAN_SCALE)
    axes.set_xlim(_limits(bars, room=20))
    axes.xaxis.set_major_formatter(_percent)
    axes.tick_params(axis="x", labelrotation=30)
    axes.set_xlabel(HUMAN_LABEL)
    place: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center", "ha": "right"}
    for row, game in enumerate(games):
        if game in percents:
            axes.text(1, row, f"{round(percents[game]):,}%", size=9, **place)
    caption = (
        "Scores of each game on the way from random play (0%) to a professional human player (100%), as in the "
        f"paper's Figure 1. The percentages are those of {last.title}."
    )
    return Chart(f"{experiment.name}-normalised", caption, axes)


@charts.styled
def overview(results: ExperimentResults) -> Chart | None:
    """The same, all games side by side, for the top of a page."""
    dots, colours = _normalised(results)
    percents = next(reversed(dots.values()), {})
    if len(dots) > MOST_METHODS or not percents:
        return None
    axes = charts.across_games(dots, percents, colours)
    axes.axhline(100, **HUMAN_LINE)
    axes.set_yscale(**HUMAN_SCALE)
    axes.set_ylim(_limits(dots, room=1.6))
    axes.yaxis.set_major_formatter(_percent)
    axes.set_ylabel(HUMAN_LABEL)
    caption = "Scores by game and method, from random play (0%) to human (100%)."
    return Chart(f"{results.experiment.name}-overview", caption, axes)


def _normalised(results: ExperimentResults) -> tuple[dict[str, dict[str, float]], list[Any]]:
    """Scores by the title of a method, then by game, and the colours of the methods; the last is ours."""
    methods = results.experiment.methods
    shown = [each for each in methods if each.name != "iw" and not is_random(each)]
    by_title = {each.title: summary.normalised(results.means(each.name)) for each in shown}
    others = [LIGHT.blue, LIGHT.grey, *SERIES[3:]]
    return by_title, [*others[: len(shown) - 1], LIGHT.orange]


def _limits(values: Mapping[str, Mapping[str, float]], room: float) -> tuple[float, float]:
    """Of an axis of normalised scores, so that every dot is whole; `room` is a factor beyond the highest."""
    shown = [value for by_game in values.values() for value in by_game.values()]
    low, high = min([*shown, 0.0]), max([*shown, 120.0])
    return min(low - 4, low * 1.6), high * room


def _percent(value: float, _: object) -> str:
    return f"{value:,.0f}%"


def is_random(method: Method) -> bool:
    """Whether it is the 0% of the chart."""
    return dict(method.settings).get("planner") == "random"


def _interquartile_means(results: ExperimentResults) -> Chart | None:
    games = summary.common_games(results)
    if not games:
        return None
    methods = results.experiment.methods
    estimates = {
        method.title: summary.interquartile_mean(results, method.name) for method in methods
    }
    axes = charts.intervals(estimates, "interquartile mean, percent of human", reference=100)
    caption = (
        f"Interquartile mean of human-normalised scores over {plural(len(games), 'game')}, with 95% intervals "
        "from a bootstrap that draws the runs of each game again."
    )
    return Chart(f"{results.experiment.name}-interquartile-mean", caption, axes)


@charts.styled
def _game_statistic(
    results: ExperimentResults, statistic: str, label: str, figure: str
) -> Chart | None:
    """The paper's Figures 2 and 3."""
    bars = {
        method.title: {
            game: value
            for game in results.experiment.games
            if (value := results.statistic(method.name, game, statistic)) is not None
        }
        for method in results.experiment.methods
    }
    bars = {title: by_game for title, by_game in bars.items() if any(by_game.values())}
    if not 0 < len(bars) <= MOST_METHODS:
        return None
    axes, _ = charts.by_game(bars)
    axes.set_xscale("symlog", linthresh=10)
    axes.xaxis.set_major_formatter(charts.number)
    axes.set_xlabel(label)
    caption = f"Mean over decisions: {label} (the paper's {figure})."
    name = f"{results.experiment.name}-{label.replace(' ', '-')}"
    return Chart(name, caption, axes)


@charts.styled
def _correlation(results: ExperimentResults) -> Chart | None:
    """Of true features and expanded nodes; the paper finds -0.51 with p < 0.001 for VAE-IW."""
    method = next((m for m in reversed(results.experiment.methods) if _has_true_bits(m)), None)
    if method is None:
        return None
    games = [game for game in results.experiment.games if results.runs(method.name, game)]
    x, y = (
        [results.statistic(method.name, game, name) or 0.0 for game in games]
        for name in ("mean_atoms_per_node", "mean_expanded_nodes")
    )
    found = score_statistics.rank_correlation(x, y)
    if found is None:
        return None
    axes = charts.axes(3.6)
    axes.scatter(x, y, s=22, color=LIGHT.orange, zorder=3)
    for game, at in zip(games, zip(x, y, strict=True), strict=True):
        axes.annotate(game, at, (4, 3), textcoords="offset points", size=8, color=LIGHT.faint)
    axes.set(xlabel="true features of a node", ylabel="expanded nodes a decision")
    axes.margins(x=0.15)
    axes.grid()
    result = f"Spearman's rank correlation {found[0]:.2f}, p {summary.p_value(found[1])}, {len(games)} games"
    caption = (
        f"True features of a node and expanded nodes of a decision, {method.title}. {result} "
        "(the paper: -0.51, p < 0.001)."
    )
    return Chart(f"{results.experiment.name}-correlation", caption, axes)


def _has_true_bits(method: Method) -> bool:
    """Whether its atoms are the true bits of a VAE, as the paper's are."""
    settings = dict(method.settings)
    return (
        bool(method.vae) and settings.get("literals", TRUE) == TRUE and not settings.get("changes")
    )


@charts.styled
def _budget_curve(results: ExperimentResults) -> Chart | None:
    """Scores against nodes a decision, with a band for the intervals."""
    lines: dict[str, list[tuple[float, Interval]]] = {}
    games = summary.common_games(results)
    for method in results.experiment.methods if games else ():
        nodes = dict(method.settings).get("budget_nodes")
        if nodes is not None:
            title = method.title.rpartition(", ")[0] or method.title
            mean = summary.interquartile_mean(results, method.name)
            lines.setdefault(title, []).append((nodes, mean))
    if max((len({nodes for nodes, _ in points}) for points in lines.values()), default=0) < 2:
        return None
    axes = charts.axes(3.4)
    for title, unsorted in lines.items():
        points = sorted(unsorted, key=lambda point: point[0])
        x = [nodes for nodes, _ in points]
        (line,) = axes.plot(x, [mean.value for _, mean in points], "o-", label=title)
        low, high = [mean.low for _, mean in points], [mean.high for _, mean in points]
        axes.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(charts.number)
    axes.set(xlabel="nodes a decision", ylabel="percent of human")
    axes.grid()
    charts.legend(axes)
    caption = f"Interquartile mean of human-normalised scores against the budget, over {len(games)} games."
    return Chart(f"{results.experiment.name}-curve", caption, axes)
