"""Notices that manifests were saved, and whether they are still being written."""
