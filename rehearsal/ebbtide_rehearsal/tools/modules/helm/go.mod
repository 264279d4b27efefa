module ebbtide.dev/tools/helm

go 1.26.0

require helm.sh/helm/v3 v3.20.2
