"""Programs behind the Makefile: environment, assets, build, check, serve, notebooks."""
