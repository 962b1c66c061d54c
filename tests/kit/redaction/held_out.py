"""Secrets and look-alikes as they stand in files, commands and talk, from the vendors' published formats.

No rule is made from this list: it says how many of those that nobody thought of are found.
"""

from __future__ import annotations

import re
import string
from base64 import b64encode
from collections.abc import Iterator, Mapping
from random import Random
from typing import Final

__all__ = [
    "NEGATIVES",
    "PLACES",
    "SITUATIONS",
    "TOKENS",
    "VALUES",
    "filled",
    "negatives",
    "positives",
]

_HOLES: Final[Mapping[str, str]] = {
    "A": string.ascii_letters,
    "B": string.ascii_letters + string.digits + "-_",
    "D": string.digits,
    "F": string.digits + "ABCDEF",
    "H": "0123456789abcdef",
    "L": string.ascii_lowercase + string.digits,
    "S": string.ascii_letters + string.digits + "+/",
    "T": string.ascii_uppercase + "234567",
    "U": string.ascii_uppercase + string.digits,
    "W": string.ascii_letters + string.digits,
}
_UUID: Final = "«H8»-«H4»-4«H3»-a«H3»-«H12»"

TOKENS: Final[Mapping[str, str]] = {
    "1password-account": "A3-«T6»-«T6»-«T5»-«T5»-«T5»-«T5»",
    "1password-service": "ops_eyJ«S260»=",
    "adobe": "p8e-«L32»",
    "age": "AGE-SECRET-KEY-1«U58»",
    "alibaba": "LTAI«L20»",
    "anthropic": "sk-ant-api03-«B93»AA",
    "anthropic-admin": "sk-ant-admin01-«B93»AA",
    "artifactory": "AKCp«W69»",
    "artifactory-reference": "cmVmd«W59»",
    "atlassian": "ATATT3«B186»",
    "authress": "authress_«L12».«L5».acc_«L16».«B60»",
    "aws": "AKIA«T16»",
    "aws-temporary": "ASIA«T16»",
    "azure-client": "«W3»8Q~«W34»",
    "clickhouse": "4b1d«W38»",
    "clojars": "CLOJARS_«L60»",
    "cloudflare-origin": "v1.0-«H24»-«H146»",
    "databricks": "dapi«H32»",
    "defined-networking": "dnkey-«L26»-«L52»",
    "digitalocean": "dop_v1_«H64»",
    "doppler": "dp.pt.«W43»",
    "dropbox": "sl.«B135»",
    "duffel": "duffel_live_«B43»",
    "dynatrace": "dt0c01.«U24».«U64»",
    "easypost": "EZAK«W54»",
    "facebook": "EAAM«W120»",
    "flutterwave": "FLWSECK_TEST-«H32»-X",
    "fly": "fm2_«S120»=",
    "frameio": "fio-u-«B64»",
    "gcp": "AIza«B35»",
    "github": "ghp_«W36»",
    "github-fine": "github_pat_«W22»_«W59»",
    "gitlab": "glpat-«B20»",
    "grafana": "glsa_«W32»_«F8»",
    "huggingface": "hf_«A34»",
    "jwt": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI«B40».«B43»",
    "linear": "lin_api_«W40»",
    "mailchimp": "«H32»-us12",
    "new-relic": "NRAK-«U27»",
    "npm": "npm_«W36»",
    "openai": "sk-proj-«B74»T3BlbkFJ«B74»",
    "openai-old": "sk-«W20»T3BlbkFJ«W20»",
    "perplexity": "pplx-«W48»",
    "groq": "gsk_«W52»",
    "plaid": f"access-sandbox-{_UUID}",
    "planetscale": "pscale_tkn_«B43»",
    "postman": "PMAK-«H24»-«H34»",
    "prefect": "pnu_«L36»",
    "pulumi": "pul-«H40»",
    "pypi": "pypi-AgEIcHlwaS5vcmc«B90»",
    "readme": "rdme_«L70»",
    "replicate": "r8_«W37»",
    "rubygems": "rubygems_«H48»",
    "scalingo": "tk-us-«B48»",
    "sendgrid": "SG.«B22».«B43»",
    "sendinblue": "xkeysib-«H64»-«L16»",
    "sentry": "sntryu_«H64»",
    "settlemint": "sm_pat_«W16»",
    "shippo": "shippo_live_«H40»",
    "shopify": "shpat_«H32»",
    "slack-app": "xapp-1-A«U10»-«D13»-«H64»",
    "slack-bot": "xoxb-«D12»-«D12»-«W24»",
    "slack-user": "xoxp-«D12»-«D12»-«D12»-«H32»",
    "sourcegraph": "sgp_«H16»_«H40»",
    "square": "sq0atp-«B22»",
    "stripe": "sk_live_«W24»",
    "stripe-restricted": "rk_live_«W99»",
    "tailscale": "tskey-auth-«W12»CNTRL-«W32»",
    "telegram": "«D10»:AA«B33»",
    "terraform": "«W14».atlasv1.«B67»",
    "twilio": "SK«H32»",
    "typeform": "tfp_«W44»_«W14»",
    "vault": "hvs.«B95»",
    "vercel-blob": "vercel_blob_rw_«W16»_«W30»",
    "xai": "xai-«W80»",
    "yandex": "AQVN«B36»",
    "webhook": "whsec_«W32»",
}
"""Tokens that show what they are wherever they stand."""

VALUES: Final[Mapping[str, str]] = {
    "ADAFRUIT_IO_KEY": "aio_«W28»",
    "ALGOLIA_ADMIN_API_KEY": "«H32»",
    "ASANA_CLIENT_SECRET": "«H32»",
    "AWS_SECRET_ACCESS_KEY": "«S40»",
    "AZURE_STORAGE_KEY": "«S86»==",
    "BITBUCKET_APP_PASSWORD": "«W20»",
    "BITTREX_API_SECRET": "«H32»",
    "CLOUDFLARE_API_TOKEN": "«B40»",
    "CODECOV_TOKEN": _UUID,
    "CO_API_KEY": "«W40»",
    "COINBASE_API_SECRET": "«W32»",
    "CONFLUENT_API_SECRET": "«S64»",
    "CONTENTFUL_ACCESS_TOKEN": "«B43»",
    "DATADOG_API_KEY": "«H32»",
    "DB_PASSWORD": "«A1»«L9»!«D2»",
    "DISCORD_CLIENT_SECRET": "«B32»",
    "DJANGO_SECRET_KEY": "«L25»#«L10»$«L8»^«L5»",
    "DRONE_TOKEN": "«W32»",
    "ETSY_SHARED_SECRET": "«L10»",
    "FACEBOOK_APP_SECRET": "«H32»",
    "FASTLY_API_TOKEN": "«B32»",
    "JWT_SECRET": "«S44»",
    "KRAKEN_PRIVATE_KEY": "«S86»==",
    "LASTFM_SHARED_SECRET": "«H32»",
    "MAILGUN_SIGNING_KEY": "«H32»",
    "MYSQL_ROOT_PASSWORD": "«W16»",
    "OKTA_API_TOKEN": "00«B40»",
    "PAGERDUTY_TOKEN": "u+«W18»",
    "POSTGRES_PASSWORD": "«W12»%«W4»",
    "RAILS_MASTER_KEY": "«H32»",
    "SECRET_KEY_BASE": "«H128»",
    "SENDBIRD_API_TOKEN": "«H40»",
    "SESSION_SECRET": "«W32»",
    "SUMO_ACCESS_KEY": "«W64»",
    "TRAVIS_API_TOKEN": "«B22»",
    "TWITCH_CLIENT_SECRET": "«L30»",
    "TWITTER_ACCESS_TOKEN_SECRET": "«W45»",
    "ZENDESK_API_TOKEN": "«W40»",
}
"""What nothing but its name tells."""

PLACES: Final[Mapping[str, str]] = {
    "dotenv": "DEBUG=1\n{name}={value}\nPORT=80\n",
    "dotenv-quoted": 'export {name}="{value}"\n',
    "json": '{{"name": "x", "{camel}": "{value}"}}',
    "json-in-json": '{{"body": "{{\\"{lower}\\": \\"{value}\\"}}"}}',
    "yaml": "app:\n  {lower}: {value}\n  port: 80\n",
    "yaml-quoted": "env:\n  - name: {name}\n    {lower}: '{value}'\n",
    "toml": '[tool]\n{lower} = "{value}"\n',
    "ini": "[main]\n{lower} = {value}\n",
    "properties": "service.{lower}={value}\n",
    "terraform": 'resource "x" "y" {{\n  {lower} = "{value}"\n}}\n',
    "docker": "FROM x\nENV {name}={value}\nRUN make\n",
    "compose": "environment:\n  - {name}={value}\n  - A=b\n",
    "docker-run": "docker run -e {name}={value} image",
    "kubernetes-literal": "kubectl create secret generic s --from-literal={lower}={value}",
    "helm": "helm install a b --set app.{lower}={value}",
    "python": '    {lower} = "{value}"  # do not commit\n',
    "python-call": 'client = Client({lower}="{value}", timeout=3)',
    "javascript": "const {camel} = '{value}';",
    "go": '{camel} := "{value}"',
    "php": "define('{name}', '{value}');",
    "ruby": "config.{lower} = '{value}'",
    "rust": 'let {lower}: &str = "{value}";',
    "diff-plus": "@@ -1 +1 @@\n-{name}=\n+{name}={value}\n",
    "shell-history": ": 1700000000:0;{name}={value} ./deploy.sh --prod",
    "traceback": "    raise Error(f'{lower}={value!s} refused')\nError: {lower}={value} refused",
    "mapping-repr": "{{'{lower}': '{value}', 'n': 1}}",
    "log-line": "2026-01-02 03:04:05 INFO config loaded {lower}={value} retries=3",
    "chat": "Sure! Put {name} = `{value}` into the file.",
    "url-parameter": "GET https://api.example.org/v1/items?limit=5&{lower}={value}",
    "flag": "tool deploy --{dashed} {value} --yes",
    "flag-equals": "tool deploy --{dashed}={value} --yes",
    "github-workflow": "      env:\n        {name}: {value}\n",
    "xml-element": "<settings><{lower}>{value}</{lower}></settings>",
}
"""Where a secret with a name stands."""

LOOSE: Final[Mapping[str, str]] = {
    "alone": "{value}",
    "sentence": "I think the one we used was {value}, please rotate it.",
    "header": 'curl -H "Authorization: Bearer {value}" https://api.example.org',
    "header-other": "X-Api-Key: {value}\r\nAccept: */*\r\n",
    "list": '["a", "{value}"]',
    "table": "| prod | {value} | yes |",
    "argument": "login('{value}')",
    "escaped-newline": '"first\\n{value}\\nlast"',
    "diff-minus": '-  key: "{value}"',
    "html": "<code>{value}</code>",
    "remote": "https://oauth2:{value}@git.example.org/a/b.git",
    "markdown": "Use `{value}` here.",
}
"""Where a token stands that needs no name."""

SITUATIONS: Final[Mapping[str, tuple[str, str]]] = {
    "basic-header": ("Authorization: Basic {value}", "~«W8»:«W14»"),
    "docker-config": (
        '{{"auths": {{"https://index.docker.io/v1/": {{"auth": "{value}"}}}}}}',
        "~«W8»:«W14»",
    ),
    "npmrc": ("//registry.npm.example/:_authToken={value}", "«W36»"),
    "npmrc-auth": ("_auth={value}", "~«W8»:«W14»"),
    "pip": ("index-url = https://deploy:{value}@pypi.example.org/simple", "«W14»"),
    "netrc": ("machine api.example.org\n  login me\n  password {value}\n", "«W14»"),
    "postgres-url": ("DATABASE_URL=postgresql://app:{value}@db:5432/x", "«W14»"),
    "mongo-url": ("mongodb+srv://app:{value}@c0.example.mongodb.net/?w=1", "«W12»"),
    "amqp-url": ('"amqp://svc:{value}@rabbit:5672/%2f"', "«W14»"),
    "redis-url": ("redis://default:{value}@cache:6379/0", "«W32»"),
    "jdbc": ("jdbc:mysql://h/db?user=a&password={value}&ssl=1", "«W14»"),
    "ado": (
        "Server=h;Database=d;User Id=sa;Password={value};Encrypt=true",
        "«W10»!«D2»",
    ),
    "azure-storage": (
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={value};X=y",
        "«S86»==",
    ),
    "sas": (
        "https://a.blob.core.windows.net/c?sv=2022&sp=r&sig={value}&se=2026",
        "«W43»%3D",
    ),
    "presigned": (
        "https://b.s3.amazonaws.com/k?X-Amz-Date=20260101&X-Amz-Signature={value}",
        "«H64»",
    ),
    "aws-file": (
        "[default]\naws_secret_access_key = {value}\nregion = eu-west-1\n",
        "«S40»",
    ),
    "kubeconfig": (
        "    client-key-data: {value}\n",
        "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt«S160»",
    ),
    "kube-token": ("users:\n- name: a\n  user:\n    token: {value}\n", "«W60»"),
    "kube-secret": ("kind: Secret\ndata:\n  password: {value}\n", "~«W16»"),
    "otp": ("otpauth://totp/x:me@example.org?secret={value}&issuer=x", "«T32»"),
    "cookie": ("Cookie: theme=dark; sessionid={value}", "«L32»"),
    "set-cookie": ("Set-Cookie: sid={value}; Path=/; HttpOnly", "s%3A«B32».«W43»"),
    "curl-user": ("curl -s -u admin:{value} https://jenkins.example.org/api", "«W14»"),
    "curl-user-quoted": ("curl --user 'admin:{value}' https://x.example.org", "«W14»"),
    "pgpassword": ("PGPASSWORD={value} psql -h db -U app", "«W14»"),
    "pgpassword-quoted": ("PGPASSWORD='{value}' pg_dump x", "«W9»@«D3»"),
    "mysql": ("mysql -u root --password={value} app", "«W14»"),
    "sshpass": ("sshpass -p '{value}' ssh root@h", "«W12»"),
    "ansible": ("ansible_become_pass: {value}", "«W14»"),
    "vault-put": ("vault kv put secret/app password={value} user=a", "«W14»"),
    "openssl": ("openssl rsa -in k.pem -passin pass:{value}", "«W14»"),
    "wordpress": ("define( 'AUTH_KEY', '{value}' );", "«W30»~«W20»|«W10»"),
    "spring": ("spring.datasource.password={value}\n", "«W14»"),
    "dotnet": ('<add key="ApiKey" value="{value}" />', "«W32»"),
    "appsettings": ('{{"Jwt": {{"SigningKey": "{value}"}}}}', "«W44»"),
    "said": ("ok, the password is {value} - try again", "«A3»«D2»-«W8»"),
    "said-short": ("pw: {value}", "«A4»«D3»!«A2»"),
    "said-token": ("here's my api token: {value}", "«W40»"),
    "bearer-two-lines": ('"Authorization":\n    "Bearer {value}"', "«W40»"),
    "yaml-folded": ("password: >-\n  {value}\n", "«W14»!«D2»"),
    "continued": ("curl \\\n  -H 'X-Auth-Token: {value}' \\\n  https://x", "«W40»"),
    "shell-continued": ("export API_KEY=\\\n{value}\n", "«W40»"),
    "pem": (
        "-----BEGIN RSA PRIVATE KEY-----\n{value}\n-----END RSA PRIVATE KEY-----",
        "MIIEow«S58»\n«S64»\n«S40»==",
    ),
    "pem-escaped": (
        '{{"private_key": "-----BEGIN PRIVATE KEY-----\\n{value}\\n-----END PRIVATE KEY-----\\n"}}',
        "MIIEvQ«S58»\\n«S64»",
    ),
    "openssh": (
        "key: |\n  -----BEGIN OPENSSH PRIVATE KEY-----\n  {value}\n  -----END OPENSSH PRIVATE KEY-----\n",
        "b3Bl«S66»",
    ),
    "pgp": (
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{value}\n-----END PGP PRIVATE KEY BLOCK-----",
        "lQdG«S60»",
    ),
    "slack-hook": ("https://hooks.slack.com/services/T0«U8»/B0«U8»/{value}", "«W24»"),
    "discord-hook": ("https://discord.com/api/webhooks/«D18»/{value}", "«B68»"),
    "teams-hook": ("https://x.webhook.office.com/webhookb2/?token={value}", "«H32»"),
    "exception": (
        "HTTPError: 401 for url: https://api.example.org/v2?api_key={value}",
        "«H32»",
    ),
    "environ": (
        "environ({{'HOME': '/root', 'GH_TOKEN': '{value}', 'LANG': 'C'}})",
        "«W40»",
    ),
    "headers-repr": (
        "headers={{'authorization': 'Bearer {value}', 'accept': '*/*'}}",
        "«W40»",
    ),
    "headers-pairs": ("[(b'authorization', b'Bearer {value}')]", "«W40»"),
    "private-hex": ("PRIVATE_KEY=0x{value}", "«H64»"),
    "fernet": ('FERNET_KEY = b"{value}"', "«B43»="),
    "encryption": ("encryption_key: {value}", "«S43»="),
    "signing-yaml": ("signing-secret: '{value}'", "«H32»"),
    "oauth-form": (
        "grant_type=client_credentials&client_id=a&client_secret={value}",
        "«W40»",
    ),
    "oauth-json": ('{{"token_type": "Bearer", "refresh_token": "{value}"}}', "«B80»"),
    "passphrase": ("BORG_PASSPHRASE='{value}'", "«W20»"),
    "wifi": ("WIFI:T:WPA;S:home;P:x;; psk password: {value}", "«W12»"),
}
"""Secrets that their surroundings tell; `~` before what is base64 of it."""

NEGATIVES: Final[Mapping[str, str]] = {
    "uuid": _UUID,
    "uuid-upper": "{«F8»-«F4»-4«F3»-A«F3»-«F12»}",
    "sha1": "commit «H40»",
    "sha1-short": "«H7» Fix the parser",
    "sha256": "sha256:«H64»",
    "md5": "«H32»  file.tar.gz",
    "sha512": "«H128»  file.iso",
    "image-digest": "image: nginx@sha256:«H64»",
    "ulid": "01«U24»",
    "object-id": '"_id": "«H24»"',
    "snowflake": "message «D18»",
    "nanoid": "id=«B21»",
    "cuid": "c«L24»",
    "date": "2026-0«D1»-1«D1»T0«D1»:«D2»:«D2».«D6»+00:00",
    "epoch": "ts=17«D8» ms=17«D11»",
    "npm-integrity": '"integrity": "sha512-«S86»=="',
    "yarn-integrity": "  integrity sha512-«S86»==",
    "yarn-checksum": "  checksum: «H128»",
    "pip-hash": "    --hash=sha256:«H64» \\",
    "poetry-hash": '{file = "a-1.0.whl", hash = "sha256:«H64»"}',
    "go-sum": "github.com/pkg/errors v0.9.1 h1:«S43»=",
    "cargo-checksum": 'checksum = "«H64»"',
    "nix-hash": 'hash = "sha256-«S43»=";',
    "sri": '<script src="a.js" integrity="sha384-«S64»"></script>',
    "image": "data:image/png;base64,iVBORw0KGgo«S200»",
    "image-json": '{"type": "image", "data": "iVBORw0KGgo«S300»"}',
    "font": "src: url(data:font/woff2;base64,d09GMgAB«S200»)",
    "thought-signature": '"signature": "ErUB«S180»"',
    "certificate": "-----BEGIN CERTIFICATE-----\nMIID«S60»\n«S64»\n-----END CERTIFICATE-----",
    "public-key": "-----BEGIN PUBLIC KEY-----\nMIIB«S60»\n«S64»\n-----END PUBLIC KEY-----",
    "ssh-public": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI«S43» me@host",
    "ssh-rsa": "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC«S200» me@host",
    "fingerprint": "SHA256:«S43» me@host (ED25519)",
    "pgp-signature": "-----BEGIN PGP SIGNATURE-----\n\niQEz«S60»\n-----END PGP SIGNATURE-----",
    "known-host": "|1|«S27»=|«S27»= ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI«S43»",
    "openai-call": "call_«W24»",
    "anthropic-call": "toolu_01«W22»",
    "anthropic-message": "msg_01«W22»",
    "openai-response": "resp_«H48»",
    "openai-completion": "chatcmpl-«W29»",
    "openai-item": "fc_«H48»",
    "request": "x-request-id: req_011«W21»",
    "trace": "traceparent: 00-«H32»-«H16»-01",
    "etag": 'ETag: "«H32»"',
    "etag-weak": 'ETag: W/"«H8»-«S26»"',
    "cache-key": "cache-key: linux-node-«H64»",
    "cache-name": "__pycache__/m.cpython-311.«H16».pyc",
    "hashed-asset": "/static/js/main.«H8».chunk.js",
    "colours": "a{color:#«H6»;background:#«H6»;border:1px solid #«H3»}",
    "minified": "function t(e,n){return e.key=n.key,e.token=n.t||r(e,n)}var a«D3»=b(c.«A2»);",
    "key-event": 'if(e.key==="Enter"||e.keyCode===13){e.preventDefault()}',
    "token-type": "token = lexer.next_token()  # type «A9»",
    "token-count": '"usage": {"prompt_tokens": «D4», "completion_tokens": «D3»}',
    "annotation": "def login(password: str, token: str | None = None) -> Session:",
    "getter": "api_key = config.get('api_key') or os.getenv('API_KEY_«A4»')",
    "placeholder": "API_KEY=your-api-key-goes-here-«D3»",
    "placeholder-angle": "password: <your password «A3»>",
    "placeholder-env": "token: ${{ secrets.DEPLOY_«A6» }}",
    "placeholder-shell": 'curl -H "Authorization: Bearer $TOKEN_«A5»" https://x',
    "placeholder-stars": "password: ********",
    "form": '<input type="password" name="password" id="field-«A4»" autocomplete="off">',
    "translation": "password.too.short=The password needs at least «D1» characters",
    "sql": "SELECT password_hash, token_id FROM users WHERE id = «D6»",
    "column": "password_hash VARCHAR(«D2») NOT NULL, api_key_id BIGINT",
    "path": "/home/me/projects/secret-santa/token_«A8»/keys.py",
    "package": "@types/jsonwebtoken@9.0.«D1» react-token-input@1.«D1».0",
    "version": "keyring==25.«D1».0; python-dotenv>=1.0.«D1»",
    "address": "http://localhost:«D4»/auth/callback?state=open&page=«D2»",
    "ipv6": "2001:db8:«H4»:«H4»:«H4»:«H4»:«H4»:«H4»",
    "mac": "«H2»:«H2»:«H2»:«H2»:«H2»:«H2»",
    "eth-address": "contract 0x«H40»",
    "transaction": "tx 0x«H64» confirmed",
    "isbn": "ISBN 978-3-«D3»-«D5»-«D1»",
    "vector": "    (bytes.fromhex('«H32»'), bytes.fromhex('«H64»')),",
    "hexdump": "00000010  «H2» «H2» «H2» «H2» «H2» «H2» «H2» «H2»  |.ELF....|",
    "source-map": '{"version":3,"mappings":"AAAA,SAAS,«A4»,CAAC,«A4»EAAE,«A6»"}',
    "youtube": "https://www.youtube.com/watch?v=«B11»",
    "document": "https://docs.example.org/d/«B44»/edit#gid=0",
    "share": "https://example.org/share/«W22»?utm_source=mail",
    "page-token": '"nextPageToken": "«B40»"',
    "cursor": "?cursor=«W32»&limit=50",
    "primary-key": '"primary_key": "row-«W20»", "sort_key": "2026#«W16»"',
    "public-stripe": "pk_live_«W24»",
    "client-id": '"client_id": "«D12»-«L32».apps.googleusercontent.com"',
    "arn": "arn:aws:iam::«D12»:role/deploy-«A6»",
    "instance": "i-0«H16» subnet-0«H16»",
    "python-repr": "<Token object at 0x7f«H10»>",
    "coverage": "src/tokens.py  «D3»  «D1»  9«D1»%  «D2»-«D3»",
    "latex": "\\label{key:«A6»} \\cite{author«D4»token}",
    "keyboard": "keys: ctrl+shift+«A1» secret_sauce_«A6»",
}
"""What is none, although it looks made by chance or stands beside a word that announces one."""


def filled(shape: str, random: Random) -> str:
    """Fill the holes of a shape: `«H8»` is eight hexadecimal digits."""
    return re.sub(
        r"«(\w)(\d+)»",
        lambda hole: "".join(random.choices(_HOLES[hole[1]], k=int(hole[2]))),
        shape,
    )


def positives(random: Random) -> Iterator[tuple[str, str, str]]:
    """Yield what a text is, the text, and the secret in it."""
    for kind, shape in TOKENS.items():
        for place, around in LOOSE.items():
            value = filled(shape, random)
            yield f"{kind} {place}", around.format(value=value), value
        place, around = random.choice([*PLACES.items()])
        yield _named(f"{kind} {place}", "SERVICE_TOKEN", around, filled(shape, random))
    for name, shape in VALUES.items():
        for place, around in PLACES.items():
            yield _named(f"{name} {place}", name, around, filled(shape, random))
    for kind, (around, shape) in SITUATIONS.items():
        for _ in range(3):
            value = filled(shape.removeprefix("~"), random)
            value = (
                b64encode(value.encode()).decode() if shape.startswith("~") else value
            )
            yield kind, filled(around, random).format(value=value), value


def negatives(random: Random) -> Iterator[tuple[str, str]]:
    """Yield what a text is, and the text; it is to stay as it is."""
    for kind, shape in NEGATIVES.items():
        for _ in range(4):
            yield kind, filled(shape, random)


def _named(kind: str, name: str, around: str, value: str) -> tuple[str, str, str]:
    words = name.lower().split("_")
    camel = words[0] + "".join(map(str.capitalize, words[1:]))
    dashed = "-".join(words)
    return (
        kind,
        around.format(
            name=name, lower=name.lower(), camel=camel, dashed=dashed, value=value
        ),
        value,
    )
