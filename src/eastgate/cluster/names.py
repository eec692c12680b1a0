"""Names, label keys and label values as Kubernetes accepts them, and the errors of others.

Each function returns a clause about the error ("it is longer than 63 characters"), to be put behind the offending text,
or None.
"""

from __future__ import annotations

from eastgate.basics.regexes import regex

_LABEL = regex(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = regex(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_WORD = regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")

_MAX_LABEL_CHARS = 63
_MAX_SUBDOMAIN_CHARS = 253


def dns_label_problem(text: str) -> str | None:
    """Return the reason why a text is no DNS label, as the names of namespaces and Services are, or None."""
    if not text:
        return "it is empty"
    if len(text) > _MAX_LABEL_CHARS:
        return f"it is longer than {_MAX_LABEL_CHARS} characters"
    if not _LABEL.fullmatch(text):
        return "it may hold only lower-case letters, digits and '-', and starts and ends with a letter or digit"
    return None


def dns_subdomain_problem(text: str) -> str | None:
    """Return the reason why a text is no DNS subdomain, as the names of most objects are, or None."""
    if not text:
        return "it is empty"
    if len(text) > _MAX_SUBDOMAIN_CHARS:
        return f"it is longer than {_MAX_SUBDOMAIN_CHARS} characters"
    if not _SUBDOMAIN.fullmatch(text):
        return (
            "it may hold only lower-case letters, digits, '-' and '.', "
            "and each part between dots starts and ends with a letter or digit"
        )
    return None


def label_key_problem(text: str) -> str | None:
    """Return the reason why a text is no key of a label, `name` or `dns.subdomain/name`, or None."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return "it holds more than one '/'"
    if slash:
        problem = dns_subdomain_problem(prefix)
        if problem:
            return f"the part before '/' is no DNS name: {problem}"
    if not name:
        return "it is empty" if not slash else "the part after '/' is empty"
    return _word_problem(name, "the part after '/'" if slash else "it")


def label_value_problem(text: str) -> str | None:
    """Return the reason why a text is no value of a label, or None. The empty text is valid."""
    return _word_problem(text, "it") if text else None


def _word_problem(text: str, subject: str) -> str | None:
    if len(text) > _MAX_LABEL_CHARS:
        return f"{subject} is longer than {_MAX_LABEL_CHARS} characters"
    if not _WORD.fullmatch(text):
        return f"{subject} may hold only letters, digits, '-', '_' and '.', and starts and ends with a letter or digit"
    return None
