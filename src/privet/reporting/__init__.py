"""Audits and certificates as pages and sentences. Reads values only."""
