"""Noticing that manifests were saved, and whether somebody is still writing them."""
