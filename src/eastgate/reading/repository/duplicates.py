"""Keys that a template writes twice. Helm takes the last one, where kubectl refuses the manifest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from eastgate.reading.manifests.yaml.plain import read_plain_yaml

_MOST = 100_000  # lines of a document that is looked at


def last_key_wins(text: str) -> str:
    """Return a document in which the lines of a key that comes again are comments, so that lines stay what they are."""
    if read_plain_yaml(text, 0) is not None or text.count("\n") > _MOST:
        return text
    import yaml  # few templates do this

    try:
        root = yaml.compose(text, yaml.CSafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return text
    lines = text.splitlines(keepends=True)
    for first, last, column in _superseded(root):
        begins = lines[first][:column]
        lines[first] = f"{begins}# {lines[first][column:]}"  # the dash of a list stays
        for number in range(first + 1, last):
            lines[number] = f"#{lines[number]}"
    return "".join(lines)


def _superseded(root: object) -> Iterator[tuple[int, int, int]]:
    """Yield the lines of entries that later ones supersede, and their column, where they have lines of their own."""
    import yaml

    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue  # an alias
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode) and not node.flow_style:
            waiting += [value for _, value in node.value]
            names = [key.value for key, _ in node.value]
            for index, ((key, _), (after, _)) in enumerate(pairwise(node.value)):
                if isinstance(key, yaml.ScalarNode) and names[index] in names[index + 1 :]:
                    yield key.start_mark.line, after.start_mark.line, key.start_mark.column
