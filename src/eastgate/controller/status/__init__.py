"""The status of policies, and events about them: whether each policy is in force, where, and if not, why.

`assess` computes the status of a policy, `merge_status` computes the write, and `StatusWriter` writes it. The status
never shows a policy as in force if it is not. Start reading at `assessment.py`.
"""

from eastgate.controller.status.assessment import Assessment, ClusterView, StatusEntry, StoredPolicy, assess
from eastgate.controller.status.events import EventRecorder
from eastgate.controller.status.keeping import PolicyStatuses, keeps_status
from eastgate.controller.status.marking import changed_policies, policies_at, unwritten_groups
from eastgate.controller.status.merging import CONTROLLER_NAME, MergedStatus, merge_status
from eastgate.controller.status.notices import Notice, NoticeReason
from eastgate.controller.status.writer import STATUS_MANAGER, StatusWriter

__all__ = [
    "CONTROLLER_NAME",
    "STATUS_MANAGER",
    "Assessment",
    "ClusterView",
    "EventRecorder",
    "MergedStatus",
    "Notice",
    "NoticeReason",
    "PolicyStatuses",
    "StatusEntry",
    "StatusWriter",
    "StoredPolicy",
    "assess",
    "changed_policies",
    "keeps_status",
    "merge_status",
    "policies_at",
    "unwritten_groups",
]
