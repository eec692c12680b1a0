"""The codes of errors in the text of a manifest, before the policies in it are interpreted."""

from __future__ import annotations

from eastgate.basics.diagnostics import Code, Severity

UNREADABLE = Code(
    "EG1001",
    "file cannot be read",
    "The file or folder does not exist, is a broken link, or may not be read by this user.",
)
TOO_LARGE = Code(
    "EG1002",
    "file is too large",
    "One text may have 512 MiB. Split it into several files.",
)
EMPTY_FOLDER = Code(
    "EG1003",
    "folder without manifests",
    "The folder was named explicitly, but neither it nor a folder below it holds a file that ends in "
    "`.yaml`, `.yml` or `.json`. Hidden files and folders are not read.",
)
NOT_UTF8 = Code(
    "EG1004",
    "text is not UTF-8",
    "Manifests are UTF-8 text, as Kubernetes demands. The document with the wrong byte was not read.",
)
CONTROL_CHARACTER = Code(
    "EG1005",
    "control character in the text",
    "YAML and JSON forbid control characters other than line breaks and tabs. They are invisible in most "
    "editors, so they are never guessed at.",
)
YAML_SYNTAX = Code(
    "EG1006",
    "YAML syntax",
    "The text is not YAML from here on. The rest of this document was not read; other documents were.",
)
TAB = Code(
    "EG1007",
    "tab in the indentation",
    "YAML is indented with spaces only.",
)
BAD_INDENTATION = Code(
    "EG1008",
    "indentation does not fit",
    "The line belongs neither to the mapping or list above it, nor to one of its entries.",
)
UNCLOSED = Code(
    "EG1009",
    "quote or bracket is never closed",
    "A quote or a bracket was opened and the document ended before it was closed.",
)
TEMPLATE = Code(
    "EG1010",
    "template text instead of YAML",
    "The text has `{{ }}` in it, as Helm charts and other templates do. Only rendered manifests can be read. In a "
    "folder, such a file is left out as one with a placeholder (EG1052).",
)
ALIAS_UNDEFINED = Code(
    "EG1011",
    "alias without an anchor",
    "`*name` repeats the value marked `&name` earlier in the same document. There is no such value.",
)
ALIAS_RECURSIVE = Code(
    "EG1012",
    "alias inside its own anchor",
    "The value of the alias contains the alias itself, so it has no end.",
)
ALIAS_BOMB = Code(
    "EG1013",
    "aliases expand too far",
    "The aliases of this document expand to more than 100,000 values together. Such documents are made to exhaust "
    "memory; the document was not read.",
)
TOO_DEEP = Code(
    "EG1014",
    "nested too deeply",
    "Mappings and lists may be nested 100 levels deep. No Kubernetes object comes near that.",
)
DUPLICATE_KEY = Code(
    "EG1015",
    "key written twice",
    "A mapping has the same key twice. Readers disagree on which of them counts, and that could change the meaning "
    "of a policy. So Eastgate chooses neither.",
)
KEY_NOT_STRING = Code(
    "EG1016",
    "key is not a string",
    "Keys of Kubernetes objects are strings. YAML reads unquoted `yes`, `on`, `80` or `null` as something else.",
)
TAG_UNKNOWN = Code(
    "EG1017",
    "unknown YAML tag",
    "Only the tags `!!str`, `!!int`, `!!float`, `!!bool`, `!!null`, `!!map` and `!!seq` have a meaning here.",
)
TAG_MISMATCH = Code(
    "EG1018",
    "value does not fit its tag",
    "The tag before the value names a type that the value does not have.",
)
MERGE_NOT_MAPPING = Code(
    "EG1019",
    "merge of a value that is not a mapping",
    "`<<` adds the keys of a mapping, or of each mapping in a list.",
)
NUMBER_RANGE = Code(
    "EG1020",
    "number that Kubernetes cannot hold",
    "Infinity, not-a-number and numbers of thousands of digits have no form in JSON, which is what the API "
    "server stores.",
)
JSON_SYNTAX = Code(
    "EG1021",
    "JSON syntax",
    "The text is not JSON from here on.",
)
TOO_MANY_FINDINGS = Code(
    "EG1022",
    "too many findings in one document",
    "After 100 findings the rest of a document is left unread.",
)
LEADS_OUT = Code(
    "EG1023",
    "path leads out of the folder",
    "A link in a folder, or a path in a decision table, leads out of the given folder, or out of the repository of "
    "the table. Its target is not read, because an error would show a line of it. With `--follow`, it is read.",
)
NOT_A_FILE = Code(
    "EG1024",
    "neither file nor folder",
    "A path with the name of a manifest is a pipe, a socket or a device. Reading it could wait for ever, and "
    "skipping it could skip a policy. Give a pipe as standard input, `-f -`.",
)
MERGE_REPLACES = Code(
    "EG1025",
    "merge that replaces a key",
    "A `<<` comes after a key that the merged mapping has too. kubectl reads in order, so the merge replaces the key; "
    "other readers keep the key. Write the `<<` first: then the keys after it win with every reader.",
)
SEPARATOR = Code(
    "EG1026",
    "content on the line of a `---`",
    "kubectl starts a document at each line that begins with `---`, and refuses the file if anything but a comment "
    "follows on that line. A line ends with a line feed; YAML's other line breaks (a carriage return alone, U+0085, "
    "U+2028, U+2029) do not end it.",
)
NOT_APPLIED = Code(
    "EG1027",
    "document that kubectl does not read",
    "kubectl reads one document between two lines that begin with `---`, and drops the rest without a message: a "
    "second document after `...` or after a line break other than a line feed, or a second JSON value. kubectl never "
    "applies the rest, so Eastgate does not read it either.",
)
OTHER_YAML = Code(
    "EG1028",
    "YAML that kubectl does not know",
    "kubectl's reader does not know all of YAML: in brackets a `?` ends a text without quotes, and `\\/` is no escape "
    "in double quotes. It refuses the manifest. Files that only Eastgate reads, such as decision tables, may have "
    "both.",
)
NO_OBJECT = Code(
    "EG1030",
    "not a Kubernetes object",
    "A manifest is a mapping with `apiVersion`, `kind` and `metadata`.",
)
FIELD_MISSING = Code(
    "EG1031",
    "`apiVersion` or `kind` is missing",
    "Without `apiVersion` and `kind`, the type of the object is unknown.",
)
FIELD_MISSPELT = Code(
    "EG1032",
    "misspelt field of every object",
    "`apiVersion`, `kind` and `metadata` are written exactly so; Kubernetes ignores other spellings.",
)
FIELD_TYPE = Code(
    "EG1033",
    "wrong type in the head of an object",
    "`apiVersion`, `kind`, `metadata.name` and `metadata.namespace` are strings, `metadata` is a mapping, "
    "`items` of a List is a list of objects.",
)
NAME_MISSING = Code(
    "EG1034",
    "object without a name",
    "Every object has a non-empty `metadata.name`.",
)
NAME_GENERATED = Code(
    "EG1035",
    "object with a generated name",
    "`metadata.generateName` asks the API server for a name. There is none offline, so the object needs a name.",
)
DUPLICATE_OBJECT = Code(
    "EG1036",
    "object written twice",
    "Two documents have the same group, kind, namespace and name. In a cluster the later one would replace the "
    "earlier; offline it is unknown which one applies.",
)
LEFT_ASIDE = Code(
    "EG1040",
    "unreadable text that is not a manifest",
    "A document in a folder cannot be read, and has neither `apiVersion` nor `kind`, so it cannot be a manifest. "
    "It was skipped. Leave the file out with `--exclude` or `.eastgateignore`.",
    Severity.INFO,
)
NO_KUSTOMIZATION = Code(
    "EG1042",
    "no kustomization",
    "The folder that `-k` names has no kustomization in it. Give a folder with manifests with `-f`.",
)
NOT_DEPLOYED = Code(
    "EG1044",
    "object that no environment deploys",
    "A policy or a workload is in a folder, but no environment of the folder deploys it: no kustomization names "
    "its file, or a directory of Argo CD excludes it. It decides nothing. If such a policy could turn an answer "
    "into a deny, the answer says `(from what is deployed)`, and has the exit status 3.",
    Severity.INFO,
)
HELM_CHART = Code(
    "EG1045",
    "templates of a Helm chart",
    "The templates of a chart are not manifests. Give the folder of the chart, and Eastgate renders it.",
)
EMPTY_INPUT = Code(
    "EG1046",
    "nothing to read",
    "A file that was named, or standard input, has no document in it. A command that failed in a pipe looks like this; "
    "`set -o pipefail` makes the shell notice.",
)
UNFINISHED_LIST = Code(
    "EG1047",
    "unfinished list",
    "`metadata.continue` says that the API server has more objects than this list, so that policies may be missing "
    "from it.",
)
SEVERAL_IN_ONE = Code(
    "EG1048",
    "several manifests in one document",
    "`apiVersion` or `kind` occurs twice at the top of one document: a `---` is missing between two manifests. "
    "Readers disagree on which of them counts.",
)
KUSTOMIZATION_NAMED = Code(
    "EG1049",
    "kustomization given as a manifest",
    "A kustomization is not a manifest. Give its folder with `-k` or `-f`, and Eastgate renders it.",
)
PLACEHOLDER = Code(
    "EG1052",
    "placeholder",
    "A value must still be filled in, by a person or by a tool: `<your-namespace>`, `${DOMAIN}`, `{{ .Values.x "
    "}}`. The final value is unknown, so the object is left out, and answers that it could change have the exit "
    "status 3. A policy closes its targets.",
    Severity.INFO,
)
BAD_PATTERN = Code(
    "EG1050",
    "pattern not understood",
    "A pattern of `--exclude` or a line of `.eastgateignore` is not a valid `.gitignore` pattern.",
)
