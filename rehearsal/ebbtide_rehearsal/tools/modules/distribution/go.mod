module ebbtide.dev/tools/distribution

go 1.26.0

require github.com/distribution/distribution/v3 v3.1.2
