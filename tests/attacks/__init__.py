"""Attacks on what Eastgate says and reads, by kind, so that each new command and placement is attacked too."""
