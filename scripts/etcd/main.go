// The etcd server, built from its Go module at the version of go.mod and checked against go.sum; see ../etcd.mjs.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
