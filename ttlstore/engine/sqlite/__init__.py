"""Stores in a file, and in memory."""
