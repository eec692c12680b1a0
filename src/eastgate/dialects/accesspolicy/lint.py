"""AccessPolicies for lint: their rules and targets, and the reading of `unlistedCaller`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.cluster import GATEWAY_GROUP, Backend, PathMatch, PathType, Route, RouteRule, UrlRewrite, World
from eastgate.cluster.gateways import BACKEND_KINDS
from eastgate.cluster.routes import GrpcRule, RouteBackend, StreamRule
from eastgate.cluster.routing.model import rules_of
from eastgate.dialects.accesspolicy import lint_codes as codes
from eastgate.dialects.accesspolicy.model import Action, Policy
from eastgate.dialects.accesspolicy.provenance import UnlistedCallerReading
from eastgate.dialects.accesspolicy.settings import AccessSettings, UnlistedCaller
from eastgate.dialects.linting import (
    Context,
    EmptyList,
    Finding,
    Linting,
    ReadingChoice,
    Statements,
    enumerated,
    is_shaped,
    locating,
    naming_of,
)
from eastgate.ir import Attachment, Layer
from eastgate.ir.paths import comparable_path
from eastgate.settings import Settings

# Finds routes that forward other paths than the MCP path to an XBackend. `spec.mcp.path` limits nothing.


_Rule = RouteRule | GrpcRule | StreamRule


def find_other_paths(context: Context) -> Iterator[Finding]:
    """Report each route that forwards other paths than `spec.mcp.path` to an XBackend, once for each backend."""
    for _, route in sorted(context.world.routes.items()):
        reported: set[str] = set()
        for number, rule in enumerate(rules_of(route)):
            for backend, ref in _backends(route, rule, context.world):
                others = dict.fromkeys(_other_paths(rule, ref, backend.path))
                if others and backend.key not in reported:
                    reported.add(backend.key)
                    yield _finding(route, number, backend, list(others))


def _backends(route: Route, rule: _Rule, world: World) -> Iterator[tuple[Backend, RouteBackend]]:
    """Yield the XBackends that a rule forwards requests to."""
    for ref in rule.backends:
        backend = world.backends.get(f"{ref.namespace}/{ref.name}") if ref.kind in BACKEND_KINDS else None
        answered = rule.redirects or any(filter_.type == "RequestRedirect" for filter_ in ref.filters)
        origin = GATEWAY_GROUP, route.kind, route.namespace
        if backend is None or answered or ref.weight == 0:
            continue
        if world.granted(*origin, ref.group, ref.kind, ref.namespace, ref.name):
            yield backend, ref


def _other_paths(rule: _Rule, ref: RouteBackend, path: str) -> Iterator[str]:
    """Yield as text the paths, except the MCP path, that reach a backend by a rule."""
    rewrites = [filter_.path for filter_ in (*rule.filters, *ref.filters) if isinstance(filter_, UrlRewrite)]
    rewritten = next((new for new in reversed(rewrites) if new is not None), None)
    if rewritten is not None and not rewritten.prefix:
        yield from () if _is_same(rewritten.value, path) else (rewritten.value,)
    elif not isinstance(rule, RouteRule):
        yield "every path"
    else:
        prefix = rewritten.value if rewritten is not None else None
        for match in rule.matches:
            yield from _beside(match.path, path, prefix)


def _beside(match: PathMatch, path: str, prefix: str | None) -> Iterator[str]:
    """Yield as text the paths of a match except this one. `prefix` replaces the part that the match names."""
    value = match.value if prefix is None else prefix
    match match.type:
        case PathType.EXACT:
            yield from () if _is_same(value, path) else (value,)
        case PathType.PREFIX:
            yield f"every path under {value}" if value.strip("/") else "every path"
        case PathType.REGEX:
            yield from () if match.value == path and path.replace("/", "").isalnum() else (f"paths like {match.value}",)


def _is_same(value: str, path: str) -> bool:
    return comparable_path(value) == comparable_path(path)


def _finding(route: Route, number: int, backend: Backend, others: list[str]) -> Finding:
    key = f"{backend.kind}/{backend.key}"
    message = f"{route.key} forwards {enumerated(others)} to {key}, whose mcp.path is {backend.path} and limits nothing"
    help_ = f"match {{type: Exact, value: {backend.path}}}, or rewrite the full path to it: then no other path arrives"
    span = locating.at(route.span, "spec", "rules", number)
    return Finding(codes.MORE_THAN_MCP_PATH, message, span, help_, (route.key, key))


_NO_TOOL = EmptyList(codes.NO_TOOL, "allows no tool", "name the tools, or remove the rule")


def _statements(policy: Policy) -> Statements:
    return Statements(
        rules=policy.rules,
        naming=naming_of(policy.rules),
        targets=policy.targets,
        target_field="targetRefs",
        allows=policy.action is Action.ALLOW,
        empty_list=_NO_TOOL,
    )


def _may_be_unlisted(layers: Sequence[Layer], _attached: Sequence[Attachment[Policy]]) -> bool:
    return is_shaped(layers, UnlistedCallerReading.setting)


def _other_unlisted_caller(settings: Settings) -> Settings:
    denies = settings.section(AccessSettings).unlisted_caller is UnlistedCaller.DENY
    return settings.having(AccessSettings(UnlistedCaller.PROCEED if denies else UnlistedCaller.DENY))


LINTING: Linting[Policy] = Linting(
    statements=_statements,
    blames=lambda _policy, _layer: True,
    readings=(
        ReadingChoice(
            UnlistedCallerReading.setting,
            codes.READING_UNLISTED_CALLER,
            _other_unlisted_caller,
            shapes=_may_be_unlisted,
            concerns=lambda attachment: attachment.policy.action is Action.ALLOW,
        ),
    ),
    fallback=None,
    checks=(find_other_paths,),
    codes=(codes,),
)
