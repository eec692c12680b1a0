"""Diagnostics of a file with a Secret never show the values of the Secret. They show all other lines."""

from __future__ import annotations

import json

import pytest

from eastgate.authority.reading import Manifests, sort_documents
from eastgate.basics.diagnostics import render_all
from eastgate.dialects import reads
from eastgate.reading.manifests import read_text
from eastgate.settings import Settings

HELD = ("hunter2", "aHVudGVyMg", "31337")  # a password, the same in base64, and one that YAML reads as a number

HEAD = "apiVersion: v1\nkind: Secret\nmetadata: {name: keys, namespace: shop}\n"
BROKEN_POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {pin: 31337}}\n"

YAML = {
    "wrong base64": HEAD + "data:\n  api_key: hunter2!\n",
    "base64 that is a number": HEAD + "data:\n  api_key: 31337\n",
    "a string that is a number": HEAD + "stringData:\n  api_key: 31337\n",
    "a number of a field that looks like metadata": HEAD + "stringData:\n  name: 31337\n  kind: 31337\n",
    "data is a string": HEAD + "data: hunter2\n",
    "data is a list": HEAD + "data: [hunter2]\n",
    "stringData is a number": HEAD + "stringData: 31337\n",
    "a key twice": HEAD + "stringData:\n  api_key: hunter2\n  api_key: hunter2\n",
    "a key twice, in one line": HEAD + "stringData: {api_key: hunter2, api_key: hunter2}\n",
    "a tab": HEAD + "stringData:\n\tapi_key: hunter2\n",
    "no space after the colon": HEAD + "stringData:\n  api_key:hunter2\n  other: x\n",
    "a colon in the value": HEAD + "stringData:\n  api_key: hunter2: hunter2\n",
    "a value that begins with @": HEAD + "stringData:\n  api_key: @hunter2\n",
    "a value that begins with %": HEAD + "stringData:\n  api_key: %hunter2\n",
    "a quote that is not closed": HEAD + 'stringData:\n  api_key: "hunter2\n',
    "a bracket that is not closed": HEAD + "stringData: {api_key: hunter2\n",
    "text behind a quoted value": HEAD + 'stringData:\n  api_key: "x"hunter2\n',
    "an escape that YAML does not know": HEAD + 'stringData:\n  api_key: "\\hunter2"\n',
    "a line that is not indented": HEAD + "stringData:\n  conf: |\n    a\n hunter2\n",
    "a line that is no entry": HEAD + "stringData:\n  a: b\nhunter2\n",
    "a key that is not indented": HEAD + "stringData:\n    a: b\n  api_key: hunter2\n",
    "a private key that is not indented": HEAD + "stringData:\n  key: |\n-----BEGIN KEY-----\nhunter2\n: x\n",
    "a template": HEAD + "stringData:\n  api_key: {{ hunter2 }}\n",
    "a control character": HEAD + "stringData:\n  api_key: hunter2\x01\n",
    "a merge key": HEAD + "stringData:\n  <<: hunter2\n",
    "kind at the end": "stringData:\n  api_key: @hunter2\nmetadata: {name: keys}\napiVersion: v1\nkind: Secret\n",
    "kind in quotes": HEAD.replace("kind: Secret", "\"kind\" : 'Secret'") + "stringData: {a: @hunter2}\n",
    "kind with a tag": HEAD.replace("Secret", "!!str Secret") + "stringData: {a: @hunter2}\n",
    "kind in the next line": HEAD.replace("Secret", "\n  Secret") + "stringData: {a: @hunter2}\n",
    "kind with a comment": HEAD.replace("Secret", "Secret # hunter2") + "data: {a: hunter2!}\n",
    "in one line": "{apiVersion: v1, kind: Secret, metadata: {name: keys}, stringData: {a: @hunter2}}\n",
    "in one line, kind last": "{stringData: {a: @hunter2}, metadata: {name: keys}, apiVersion: v1, kind: Secret}\n",
    "in one line behind the separator": "--- {apiVersion: v1, kind: Secret, stringData: {a: @hunter2}}\n",
    "indented": "".join(f"  {line}\n" for line in (HEAD + "stringData:\n  a: @hunter2").splitlines()),
    "without a name": "apiVersion: v1\nkind: Secret\nstringData: {api_key: hunter2}\n",
    "with a misspelt name": "apiVersion: v1\nkind: Secret\nmetadata: {nmae: keys}\nstringData: {api_key: hunter2}\n",
    "with its last version in an annotation": HEAD.replace(
        "namespace: shop", "annotations: {last: '{\"stringData\":\"hunter2\"}', x: 1}"
    ),
    "in a List": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: keys}\n"
    "  stringData:\n    api_key: @hunter2\n",
    "in a List, indented": "apiVersion: v1\nkind: List\nitems:\n  - kind: Secret\n    apiVersion: v1\n"
    "    metadata: {name: keys}\n   stringData: {api_key: hunter2}\n",
    "in a SecretList": "apiVersion: v1\nkind: SecretList\nitems:\n- metadata: {name: keys}\n  data: {a: hunter2!}\n",
    "in a Template": "kind: Template\napiVersion: template.openshift.io/v1\nmetadata: {name: t}\nobjects:\n"
    "- kind: Secret\n  apiVersion: v1\n  metadata: {name: keys}\n  stringData:\n    api_key: @hunter2\n",
    "beside a reference in one line": "kind: List\napiVersion: v1\nitems: [{kind: Gateway, spec: {ref: {kind: Secret, "
    "name: x}}}, {kind: Secret, stringData: {a: @hunter2}}]\n",
    "in the text of a ConfigMap": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  secret.yaml: |\n"
    "    kind: Secret\n    stringData:\n      api_key: hunter2\n   x: hunter2\n",
    "the second document of three": BROKEN_POD.replace("31337", "1") + "---\n" + HEAD + "data: {a: hunter2!}\n---\n"
    "apiVersion: v1\nkind: Pod\nmetadata: {name: q, labels: {x: 2}}\n",
}  # fmt: skip

JSON = {
    "wrong base64": '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "data": {"a": "hunter2!"}}',
    "a number": '{\n  "apiVersion": "v1",\n  "kind": "Secret",\n  "metadata": {"name": "keys"},\n'
    '  "stringData": {\n    "name": 31337\n  }\n}\n',
    "a key twice": '{"kind":"Secret","apiVersion":"v1","metadata":{"name":"k"},"stringData":{"a":"hunter2","a":"x"}}',
    "a missing comma": '{\n  "kind": "Secret",\n  "apiVersion": "v1",\n  "stringData": {"a": "hunter2" "b": "x"}\n}\n',
    "a string that is not closed": '{\n  "kind": "Secret",\n  "stringData": {"a": "hunter2}\n}\n',
    "an escape": '{\n  "kind": "Secret",\n  "apiVersion": "v1",\n  "stringData": {"a": "\\hunter2"}\n}\n',
    "in a List": '{"kind":"List","apiVersion":"v1","items":[{"kind":"Secret","apiVersion":"v1","metadata":'
    '{"name":"k"},"data":{"a":"hunter2!"}}]}',
}

# The reader quotes unreadable text in its message, not only in the line below.
QUOTED_BY_THE_READER = {
    "an alias": ("s.yaml", HEAD + "stringData:\n  api_key: *hunter2\n"),
    "a tag": ("s.yaml", HEAD + "stringData:\n  api_key: !hunter2 x\n"),
    "a value that its tag does not fit": ("s.yaml", HEAD + "stringData:\n  api_key: !!int hunter2\n"),
    "a number that is too large": ("s.yaml", HEAD + "stringData:\n  pin: 31337e999\n"),
    "a word without quotes in JSON": ("s.json", '{"kind": "Secret", "stringData": {"a": hunter2}}'),
}


def read(name: str, text: str) -> Manifests:
    reading = read_text(name, text, positioned=reads)
    return sort_documents(reading.documents, Settings(), reading.reporter)


def diagnostics_text(name: str, text: str) -> str:
    """Return all diagnostics of a text, as text and as JSON."""
    found = list(read(name, text).reporter)
    assert found, "nothing is wrong with this Secret"
    assert all(one.span is None or one.span.underlined for one in found)
    return render_all(found) + json.dumps([one.to_json() for one in found], ensure_ascii=False)


def leaks(output: str) -> list[str]:
    return [held for held in HELD if held in output]


@pytest.mark.parametrize("text", YAML.values(), ids=YAML)
def test_a_broken_secret_is_not_shown(text: str) -> None:
    assert leaks(diagnostics_text("s.yaml", text)) == []


@pytest.mark.parametrize("text", JSON.values(), ids=JSON)
def test_a_broken_secret_in_json_is_not_shown(text: str) -> None:
    assert leaks(diagnostics_text("s.json", text)) == []


@pytest.mark.parametrize(("name", "text"), QUOTED_BY_THE_READER.values(), ids=QUOTED_BY_THE_READER)
def test_a_broken_secret_is_not_quoted(name: str, text: str) -> None:
    assert leaks(diagnostics_text(name, text)) == []


OPEN_POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: visible, labels: {a: 1}}\n"

# Objects that are not Secrets but name one.
OPEN = {
    "a Gateway with a certificate": """\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: g, namespace: shop}
spec:
  listeners:
  - name: https
    port: visible
    tls:
      certificateRefs:
      - group: ""
        kind: Secret
        name: certificate
""",
    "a Gateway with a certificate in one line": """\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: g, namespace: shop}
spec:
  listeners:
  - {name: https, port: visible, tls: {certificateRefs: [{kind: Secret, name: certificate}]}}
""",
    "a ReferenceGrant": """\
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: g, namespace: shop}
spec:
  from: visible
  to:
  - kind: Secret
    group: ""
""",
    "a comment": f"# kind: Secret\n{OPEN_POD}",
    "another kind": "apiVersion: v1\nkind: SecretStore\nmetadata: {name: visible, labels: {a: 1}, name: b}\n",
    "a document behind one": f"{HEAD}---\n{OPEN_POD}",
    "a document before one": f"{OPEN_POD}...\n---\n{HEAD}",
    "pretty JSON": """\
{
  "apiVersion": "gateway.networking.k8s.io/v1",
  "kind": "Gateway",
  "metadata": {"name": "g", "namespace": "shop"},
  "spec": {
    "listeners": [
      {
        "name": "https", "protocol": "HTTPS", "port": "visible",
        "tls": {
          "certificateRefs": [
            {
              "kind": "Secret",
              "name": "certificate"
            }
          ]
        }
      }
    ]
  }
}
""",
}


@pytest.mark.parametrize("text", OPEN.values(), ids=OPEN)
def test_what_only_names_a_secret_is_shown(text: str) -> None:
    output = render_all(read("s.yaml", text).reporter)
    assert "visible" in output
    assert "***" not in output


def test_of_a_secret_its_fields_and_its_name_are_shown() -> None:
    text = """\
apiVersion: v1
kind: Secret
metadata:
  name: keys
  labels: {app: shop}
type: Opaque
stringData:
  name: hunter2
  conf: |
    metadata:
      name: hunter2
"""
    shown = read_text("s.yaml", text, positioned=lambda *_: True).documents[0].span.source
    assert [shown.line(number) for number in range(1, 12)] == [
        "apiVersion: v1",
        "kind: Secret",
        "metadata:",
        "  name: keys",
        "  labels: {app: shop}",
        "type: Opaque",
        "stringData:",
        "  name: *******",
        "  conf: *",
        "    *********",
        "      ***** *******",
    ]


def test_a_template_in_a_secret_is_recognized() -> None:
    assert "{{ ******* }}" in diagnostics_text("s.yaml", HEAD + "stringData:\n  api_key: {{ hunter2 }}\n")


def lines_of(name: str, text: str) -> list[str]:
    """Return all lines of a text as diagnostics show them."""
    (finding, *_) = (one for one in read(name, text).reporter if one.span is not None)
    assert finding.span is not None
    return [finding.span.source.line(number + 1) for number in range(len(text.splitlines()))]


BAD_ITEM = """\
- apiVersion: v1
  kind: Pod
  metadata: {name: visible, labels: {a: 1}}
"""
HOLDING_ITEM = """\
- apiVersion: v1
  data:
    visible: 31337
  kind: Secret
  metadata: {name: keys}
"""


@pytest.mark.parametrize(
    "items",
    [BAD_ITEM + HOLDING_ITEM, HOLDING_ITEM + BAD_ITEM, BAD_ITEM + HOLDING_ITEM + BAD_ITEM.replace("le,", "ly,")],
)
def test_in_a_list_only_the_values_of_secrets_are_hidden(items: str) -> None:
    text = f"apiVersion: v1\nkind: List\nitems:\n{items}"
    output = diagnostics_text("s.yaml", text)
    assert leaks(output) == []
    assert "metadata: {name: visible, labels: {a: 1}}" in output
    assert "    visible: *****" in lines_of("s.yaml", text)


def test_in_a_list_of_json_only_the_values_of_secrets_are_hidden() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "visible", "labels": {"a": 1}}}
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"visible": 31337}, "metadata": {"name": "keys"}}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod, secret]}, indent=4)
    output = diagnostics_text("s.json", text)
    assert leaks(output) == []
    assert '"a": 1' in output
    assert any('"visible": *****' in line for line in lines_of("s.json", text))


@pytest.mark.parametrize(
    "items",
    [
        HOLDING_ITEM.replace("31337", "|\n- hunter2\n- : x"),
        HOLDING_ITEM.replace("data:", "stringData: {").replace("31337", "@hunter2"),
        HOLDING_ITEM.replace("  data:", " data:").replace("31337", "@hunter2"),
        HOLDING_ITEM.replace("  kind", " kind").replace("31337", "@hunter2") + "- kind: Pod\n",
    ],
)
def test_a_secret_of_a_list_that_is_broken_off_is_hidden_whole(items: str) -> None:
    assert leaks(diagnostics_text("s.yaml", f"apiVersion: v1\nkind: List\nitems:\n{BAD_ITEM}{items}{BAD_ITEM}")) == []
