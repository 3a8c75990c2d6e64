"""What the suites are written with. `case` declares tests, `main` runs a suite, `weir` runs the proxy, `pgwire` and `mywire`
speak the protocols byte by byte, `external` runs the programs in other languages."""
