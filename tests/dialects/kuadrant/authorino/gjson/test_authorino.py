"""Authorino's own modifiers and templates, as in its documentation and tests."""

from __future__ import annotations

import base64
import json

import pytest

from eastgate.dialects.kuadrant.authorino.gjson import TooMuch, fill, is_template, select

DOCUMENT = {
    "request": {"host": "api.io", "path": "/a/b?c=1&d=2", "headers": {"authorization": "Bearer x.eyJleHAiOjE3fQ.z"}},
    "auth": {
        "identity": {
            "username": "john",
            "fullname": "John Doe",
            "email": "john@test",
            "email_verified": True,
            "roles": ["user", "admin"],
            "github.com": "https://github.com/john",
            "encoded": "am9obg",
            "padded": "am9obg==",
            "dirty": "\n\nbob\u0012\u200b",
            "quote": 'a"b',
        }
    },
}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("auth.identity.fullname.@extract", "John"),
        ('auth.identity.fullname.@extract:{"pos":1}', "Doe"),
        ('auth.identity.fullname.@extract:{"pos":8}', ""),
        ('auth.identity.email.@extract:{"sep":"@","pos":1}', "test"),
        ('auth.identity.fullname.@replace:{"old":"John","new":"Jane"}', "Jane Doe"),
        ('auth.identity.fullname.@replace:{"old":"Peter","new":"Jane"}', "John Doe"),
        ("auth.identity.fullname.@case:upper", "JOHN DOE"),
        ("auth.identity.fullname.@case:lower", "john doe"),
        ("auth.identity.roles.@case:upper", '["USER","ADMIN"]'),
        ("auth.identity.encoded.@base64:decode", "john"),
        ("auth.identity.padded.@base64:decode", "john"),
        ("auth.identity.username.@base64:encode", "am9obg=="),
        # It changes JSON, where control characters are written as escapes that can be printed.
        ("auth.identity.dirty.@strip", "\n\nbob\u0012"),
        # The result is quoted but not escaped, so the quote ends it.
        ('auth.identity.quote.@replace:{"old":"x","new":"y"}', "a"),
    ],
)
def test_modifiers(path: str, text: str) -> None:
    assert select(DOCUMENT, path).text == text


def test_a_claim_of_a_token_in_a_header() -> None:
    path = 'request.headers.authorization.@extract:{"pos":1}|@extract:{"sep":".","pos":1}|@base64:decode|@fromstr|exp'
    assert select(DOCUMENT, path).value == 17


def test_extracting_past_the_end_gives_a_null_that_exists() -> None:
    selected = select(DOCUMENT, 'auth.identity.username.@extract:{"pos":3}')
    assert (selected.exists, selected.value, selected.text) == (True, None, "")


def test_a_negative_position_fails_closed() -> None:
    with pytest.raises(TooMuch, match="counts from 0"):
        select(DOCUMENT, 'auth.identity.username.@extract:{"pos":-1}')


@pytest.mark.parametrize("text", ["", "a", "ab", "abc", "é☃", "{}", '{"a":[1]}'])
def test_base64_there_and_back(text: str) -> None:
    assert select([text], "0.@base64:encode").text == base64.b64encode(text.encode()).decode()
    assert select([text], "0.@base64:encode|@base64:decode").text == text


@pytest.mark.parametrize(
    ("encoded", "decoded"),
    [
        ("am9obg=", "joh"),
        ("am9o!bg", "joh"),
        ("am9\nobg==", "joh"),
        ("am9\nobg==\n\n\n", "john"),
        ("a", ""),
        ("====", ""),
        ("ab=c", ""),
        ("/w", "\ufffd"),
    ],
)
def test_what_base64_cannot_decode_is_left_out(encoded: str, decoded: str) -> None:
    assert select([encoded], "0.@base64:decode").text == decoded


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("Nothing to replace", "Nothing to replace"),
        ("Hello, {auth.identity.username}!", "Hello, john!"),
        ("{auth.identity.username}{auth.identity.email}", "johnjohn@test"),
        ("{auth.identity.email_verified} (bool)", "true (bool)"),
        ("{auth.identity.roles}", '["user","admin"]'),
        ("[{auth.identity.gone}]", "[]"),
        ("{}", ""),
        ('Domain: {auth.identity.email.@extract:{"sep":"@","pos":1}}', "Domain: test"),
        (r"{auth.identity.github\.com}", "https://github.com/john"),
        (r'{auth.identity.github\.com|@extract:{"sep":"/","pos":3}|@case:upper}', "JOHN"),
        (r"NOT a \{placeholder\}, {auth.identity.username}!", "NOT a {placeholder}, john!"),
        (r"\\{auth.identity.username} \\o/", r"\john \o/"),
        (r"\\\{auth.identity.username\}", r"\{auth.identity.username}"),
        ("a } b", "a } b"),
        ("ends in \\", "ends in "),
        ("username: {auth.identity.username", "username: "),
        ("username: {auth.ide{ntit/y.u\\sername}", "username: "),
        (r'\{"user":"{auth.identity.username}"\}', '{"user":"john"}'),
    ],
)
def test_templates(template: str, filled: str) -> None:
    assert fill(template, DOCUMENT) == filled


@pytest.mark.parametrize(
    ("text", "template"),
    [
        ("auth.identity.username", False),
        (r"auth.identity.metadata.annotations.authorino\.kuadrant\.io/username|@case:lower", False),
        ('auth.identity.name.@replace:{"old":"john","new":"John"}', False),
        ('a.@extract:{"pos":1}|@replace:{"old":"a","new":"b"}', False),
        ("Hello, {auth.identity.username}!", True),
        ("{auth.identity.username}", True),
        ('Hello, {auth.identity.name|@extract:{"pos":1}}!', True),
        ('@extract:{"pos":1}', True),
        ("Not a valid {template!", True),
    ],
)
def test_what_authorino_takes_for_a_template(text: str, template: bool) -> None:
    assert is_template(text) is template


def test_json_in_a_string_can_be_walked() -> None:
    document = {"body": json.dumps({"user": {"roles": ["a", "b"]}})}
    assert select(document, "body.@fromstr.user.roles.1").text == "b"
