#!/usr/bin/env python3
"""Checks of the house rules; run as a test."""
