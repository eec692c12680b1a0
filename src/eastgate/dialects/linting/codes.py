"""Codes of findings about policies of any dialect: valid policies that are probably not what the author meant.

The codes of one dialect are in its `lint_codes`.
"""

from eastgate.basics.diagnostics import Code, Severity

# Targets

SELECTS_NOTHING = Code(
    "EG6001",
    "target without workloads",
    "The policy is valid, but it applies to nothing, so it does not protect what it was meant to protect. This is not "
    "reported if the manifests contain no workloads at all.",
    Severity.WARNING,
    needs_cluster=True,
    wrong="selector: {matchLabels: {app: wbe}}\n",
    right="selector: {matchLabels: {app: web}}\n",
)
NO_SUCH_TARGET = Code(
    "EG6002",
    "target that no manifest declares",
    "The Service, Gateway, Backend, Server, route or workload that the policy names is not in the manifests.",
    Severity.WARNING,
    needs_cluster=True,
)
PORT_NOT_EXPOSED = Code(
    "EG6003",
    "port that no selected workload exposes",
    "Policies name ports of the workload (`containerPort`), not of a Service. Workloads that declare no ports "
    "may expose any.",
    Severity.WARNING,
    needs_cluster=True,
    wrong="# Service: {port: 80, targetPort: 8080}\nports: [80]\n",
    right="ports: [8080]\n",
)
NO_SUCH_ACCOUNT = Code(
    "EG6004",
    "service account that does not exist",
    "No manifest declares the service account and no workload runs as it, although other accounts of its namespace "
    "are declared. No caller can have this identity.",
    Severity.WARNING,
    needs_cluster=True,
)
NO_SUCH_NAMESPACE = Code(
    "EG6005",
    "namespace that does not exist",
    "Other namespaces are declared, but not this one, and nothing is in it. It may only be missing from the manifests. "
    "Namespaces of the cluster itself and of usual platforms (`kube-system`, `istio-system`, `monitoring`) are known.",
    Severity.INFO,
    needs_cluster=True,
)
FOREIGN_TRUST_DOMAIN = Code(
    "EG6006",
    "identity of another trust domain",
    "Only a federated mesh allows such a client, and no `serviceAccounts` entry matches it.",
    Severity.INFO,
    needs_cluster=True,
)
TYPO = Code(
    "EG6007",
    "looks like a misspelt name",
    "Nothing has this name, label or trust domain, but a similar one exists: it differs in one or two letters.",
    Severity.WARNING,
    needs_cluster=True,
)
NOT_ENFORCED = Code(
    "EG6008",
    "policy on a pod without an eastgate proxy",
    "With `--cluster` (or `sidecars: actual`): the pod has no proxy of Eastgate, or it is not certain that its proxy "
    "sees its connections, and no native policy replaces the policy. The policy refuses no requests there.",
    Severity.WARNING,
    needs_cluster=True,
)

# Rules

MATCHES_NOTHING = Code(
    "EG6020",
    "rule with an empty list",
    "An explicitly empty list matches nothing, and so does a source without fields. Left out, it would match anything. "
    "The rule has no effect.",
    Severity.WARNING,
)
CONTRADICTION = Code(
    "EG6021",
    "conditions that cannot hold together",
    "Every condition of the rule can be met, but no request meets all of them.",
    Severity.WARNING,
)
SHADOWED = Code(
    "EG6022",
    "rule that other rules precede",
    "On every workload that the rule applies to, earlier rules decide every request that it matches: a DENY, or a "
    "higher tier. This is exact: no request reaches the rule.",
    Severity.WARNING,
    needs_cluster=True,
)
REDUNDANT = Code(
    "EG6023",
    "rule that another one covers",
    "Another rule with the same effect applies to the same workloads and matches all requests of this rule. Without it "
    "every decision stays the same, with one exception: if it is the only rule that reads paths, paths with an encoded "
    "slash are no longer refused.",
    Severity.INFO,
    needs_cluster=True,
)
DUPLICATE = Code(
    "EG6024",
    "rule that is written twice",
    "Two rules with the same effect and the same meaning apply to the same workloads. A later change of only one of "
    "them has no effect.",
    Severity.WARNING,
    needs_cluster=True,
)

# Workloads

LOCKED_OUT = Code(
    "EG6040",
    "workload that nothing can reach",
    "Policies apply to the workload, and they deny every request.",
    Severity.WARNING,
    needs_cluster=True,
)
LAYERS_DISAGREE = Code(
    "EG6041",
    "one layer allows what another denies",
    "Policies of two kinds apply to the workload, and both must allow. One kind names a client, and the other refuses "
    "every request of this client.",
    Severity.WARNING,
    needs_cluster=True,
)
AUDIT_WOULD_CHANGE = Code(
    "EG6046",
    "changes by an audited policy",
    "The policy is only audited and decides nothing yet: `eastgate.dev/mode: audit`, `istio.io/dry-run`, or Linkerd's "
    "`accessPolicy: audit`. If all audited policies were in force, these callers would get another verdict. The check "
    "uses callers, ports and paths that manifests and rules name.",
    Severity.INFO,
    needs_cluster=True,
)

# Gateways

UNPROTECTED = Code(
    "EG6060",
    "unprotected beside protected ones",
    "Other routes or backends of the same Gateway have policies. This one and the Gateway have none.",
    Severity.WARNING,
    needs_cluster=True,
)

# Suppressions

NO_REASON = Code(
    "EG6090",
    "suppression that cannot be read",
    "An annotation is `<code>: <reason>`, several separated by `;` or a line break. A comment is `# eastgate: ignore "
    "<code> because <reason>`. A suppression without a reason suppresses nothing.",
    Severity.WARNING,
    wrong="# eastgate: ignore EG6003\n",
    right="# eastgate: ignore EG6003 because the operator opens the port\n",
)
SUPPRESSES_NOTHING = Code(
    "EG6091",
    "suppression without a finding",
    "Nothing here has this finding. Remove the suppression, so that it does not hide a later finding.",
    Severity.WARNING,
    needs_cluster=True,
)
