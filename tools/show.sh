#!/bin/sh
# What `./dev run` starts.
exec build/release/weir demo "$@"
