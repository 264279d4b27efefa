"""Fakes of the credential plugins of kubeconfigs: gke-gcloud-auth-plugin and kubelogin.

A stack's kubeconfig names them, so that real clients can use it unchanged. They accept and reject the same
arguments as the real plugins, and return a token of the rehearsal.
Sources: kubernetes/cloud-provider-gcp cmd/gke-gcloud-auth-plugin/cred.go (2026); Azure/kubelogin
pkg/internal/token/options.go (2026); kubernetes.io/docs/reference/access-authn-authz/authentication,
client-go credential plugins.
"""

import re
from pathlib import Path
from string import Template
from typing import Final

_TOKEN: Final = re.compile(r"^[A-Za-z0-9._~+/=-]+$")

_CREDENTIAL: Final = """\
cat <<'END'
{
    "kind": "ExecCredential",
    "apiVersion": "client.authentication.k8s.io/v1beta1",
    "spec": {"interactive": false},
    "status": {"token": "$token"}
}
END
"""

_GKE: Final = """\
#!/bin/sh
# In place of gke-gcloud-auth-plugin, in a rehearsal.
for argument; do
    case "$$argument" in
        --version) echo "Kubernetes v0.0.0-rehearsal"; exit 0 ;;
        --use_application_default_credentials|--use_application_default_credentials=*) ;;
        --project=*|--account=*|--impersonate_service_account=*|--configuration=*) ;;
        *) echo "unknown flag: $$argument" >&2; exit 2 ;;
    esac
done
"""

_KUBELOGIN: Final = """\
#!/bin/sh
# In place of kubelogin, in a rehearsal.
fail() { echo "Error: $$1" >&2; exit 1; }
if [ "$$1" = --version ]; then echo "kubelogin version rehearsal"; exit 0; fi
[ "$$1" = get-token ] || fail "unknown command \\"$$1\\" for \\"kubelogin\\""
shift
login=devicecode server= environment=AzurePublicCloud client=$${AZURE_CLIENT_ID-} tenant=$${AZURE_TENANT_ID-}
federated=$${AZURE_FEDERATED_TOKEN_FILE-}
while [ $$# -gt 0 ]; do
    case "$$1" in
        --*=*) name=$${1%%=*} value=$${1#*=} ;;
        -*) [ $$# -gt 1 ] || fail "flag needs an argument: $$1"; name=$$1 value=$$2; shift ;;
        *) fail "unexpected argument $$1" ;;
    esac
    shift
    case "$$name" in
        --login|-l) login=$$value ;;
        --server-id) server=$$value ;;
        --environment|-e) environment=$$value ;;
        --client-id) client=$$value ;;
        --tenant-id|-t) tenant=$$value ;;
        --federated-token-file) federated=$$value ;;
        --token-cache-dir|--authority-host|--timeout) ;;
        *) fail "unknown flag: $$name" ;;
    esac
done
login=$${AAD_LOGIN_METHOD:-$$login}
case "$$login" in
    azurecli) ;;
    workloadidentity)
        [ -n "$$client" ] || fail "client ID is required"
        [ -n "$$tenant" ] || fail "tenant ID is required"
        # A job on GitHub's runners requests its token (kubelogin 0.2.22, provider.go, 2026).
        [ -n "$${ACTIONS_ID_TOKEN_REQUEST_TOKEN-}" ] && [ -n "$${ACTIONS_ID_TOKEN_REQUEST_URL-}" ] ||
            [ -n "$$federated" ] || fail "federated token file is required" ;;
    devicecode|interactive|spn|ropc|msi)
        fail "login $$login wants a person or a secret, and here is neither" ;;
    *) fail "'$$login' is not a supported login method" ;;
esac
[ -n "$$server" ] || fail "server-id is required"
case "$$environment" in
    AzurePublicCloud|AzureUSGovernmentCloud|AzureChinaCloud) ;;
    *) fail "There is no cloud environment matching the name $$environment" ;;
esac
"""


def write_credential_plugins(directory: Path, token: str) -> None:
    """Write both programs into a directory for PATH, readable by the owner only.

    Args:
        directory: created if it does not exist.
        token: the API servers' token, which the programs return.

    Raises:
        ValueError: the token has characters that are invalid in a bearer token.
    """
    if not _TOKEN.match(token):
        raise ValueError("A bearer token has letters, digits and -._~+/= alone.")
    directory.mkdir(parents=True, exist_ok=True)
    for name, checks in (("gke-gcloud-auth-plugin", _GKE), ("kubelogin", _KUBELOGIN)):
        program = directory / name
        program.touch(mode=0o700)
        program.chmod(0o700)
        program.write_text(Template(checks + _CREDENTIAL).substitute(token=token))
