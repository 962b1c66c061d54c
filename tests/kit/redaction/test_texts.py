"""Secrets that are told by what stands before them, and all that only looks like one."""

from __future__ import annotations

from typing import Final

import pytest

from amplifier_kit.redaction import KnownSecrets, StrictRedactor, personal_details
from tests.timing import grows_in_proportion, takes_at_most

SECRET: Final = "h4Xk9-Qz7vR2"
RANDOM: Final = "q8Zr2LmX5tVb7NcK1pWd"
AWS: Final = "AKIA2E0A8F3B244C9986"

ASSIGNED: Final = [
    f'password = "{SECRET}"',
    f"password: {SECRET}",
    f"DB_PASSWORD={SECRET}",
    "export DB_PASSWORD=swordfish",
    f'{{"client_secret": "{RANDOM}"}}',
    f'{{\\"apiKey\\": \\"{RANDOM}\\"}}',
    f"openai_api_key: {RANDOM}",
    f"MyService.AccessToken={RANDOM};Timeout=3",
    f"Server=db;Pwd={SECRET};",
    f"--token {RANDOM}",
    f"--password={SECRET}",
    f"<password>{SECRET}</password>",
    f"the password is {SECRET}",
    f"Authorization: Bearer {RANDOM}",
    f"authorization: Basic {RANDOM}",
    f'headers["Authorization"] = "Bearer {RANDOM}"',
    f"X-Api-Key: {RANDOM}",
    f"[(b'Host', b'h'), (b'X-Api-Key', b'{RANDOM}')]",
    f"curl -u admin:{SECRET} https://example.org",
    f"postgres://app:{SECRET}@db.internal/x",
    f"redis://:{SECRET}@cache:6379",
    f"https://{RANDOM}@git.example.org/x.git",
    f"https://host/path?key={RANDOM}&page=2",
    f"Cookie: session={RANDOM}; theme=dark",
    f"machine h login me password {SECRET}",
    f"sshpass -p {SECRET} ssh host",
    f'{{"name": "API_KEY", "value": "{RANDOM}"}}',
    f"- name: DB_PASSWORD\n  value: {SECRET}\n",
    f'<add key="ApiKey" value="{RANDOM}" />',
    f'api_key: str = "{RANDOM}"',
    f'const token: string = "{RANDOM}"',
    f"the token = `{RANDOM}`",
    f'FERNET_KEY = b"{RANDOM}"',
    f"password: >-\n  {SECRET}\n",
    f"export API_KEY=\\\n{RANDOM}\n",
    f"openssl rsa -in k.pem -passin pass:{SECRET}",
    f"pw: {SECRET}",
    "client_secret: Ai6AMC_VPiaBe5TjWJy4XYjZx2t0P1bTGRO",
    "storage_key = /9Pl6ZIty2N4FIbUFHtLjN15w76wtKIX1p6gZLkjQo==",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAx7h4Xk9\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUh4Xk9",
    "Private-Lines: 1\nAAAAgQCh4Xk9aaaa\nPrivate-MAC: 00ff",
]

HARMLESS: Final = [
    "the password field is required",
    "password = getpass.getpass()",
    "token = self.tokens[0]",
    "token=token, secret=secret",
    'password = os.environ["DB_PASSWORD"]',
    'api_key = "${OPENAI_API_KEY}"',
    'api_key = "your-api-key-here-1234"',
    'password = "********"',
    "Authorization: Bearer <token>",
    "Authorization: Bearer ${TOKEN}",
    "max_tokens=4096, prompt_tokens: 1234567",
    'next_page_token: "q8Zr2LmX5tVb7NcK1pWd"',
    "public_key = ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQ\n-----END CERTIFICATE-----",
    "-----BEGIN PRIVATE KEY-----",
    "550e8400-e29b-41d4-a716-446655440000",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    'integrity="sha512-q8Zr2LmX5tVb7NcK1pWdq8Zr2LmX5tVb7NcK1pWdq8Zr2LmX5tVb7NcK1pWd=="',
    "2024-05-17T12:34:56.789+00:00",
    "call_q8Zr2LmX5tVb7NcK1pWd toolu_01A09q90qw90lq917835lq9",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "http://user:password@host/",
    "http://localhost:8080/a@b",
    "file:///usr/lib/python3.11/secrets.py",
    "import { key } from './key-value-store-implementation-2'",
    '"AWS::ApiGateway::ApiKey": "48205d4ffd7feba3",',
    '{"name": "API_KEY", "value": "from-the-vault"}',
    "- name: MAX_TOKENS\n  value: q8Zr2LmX5tVb7NcK1pWd",
    "token_path = /usr/share/tokens/v2/abc123def456ghi789",
    "password: str = field(default=None)",
    "key: value, primary_key = id1234567890123456",
]


def redact(text: str) -> str:
    return StrictRedactor(known=KnownSecrets()).redact_text(text)


@pytest.mark.parametrize("text", ASSIGNED)
def test_a_secret_is_told_by_what_stands_before_it(text: str) -> None:
    redacted = redact(text)

    assert "[REDACTED:" in redacted
    assert not any(
        part in redacted
        for part in (SECRET, RANDOM, "swordfish", "h4Xk9", "VPiaBe", "9Pl6ZI")
    )
    assert redact(redacted) == redacted


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "| user | password |\n|---|---|\n| ann | {} |\n",
        "user,password,url\nann,{},https://a.example\nbob,-,x\nand no more of it\n",
        "user\tapi_password\nann\t{}",
        "Key         Value\n---         -----\npassword    {}\nuser        ann\n",
        "INSERT INTO users (name, password) VALUES ('ann', '{}');",
        "set -gx DB_PASSWORD {}",
        "mysql -u root -p{} shop",
        "CREATE USER ann IDENTIFIED BY '{}';",
        "echo '{}' | sudo -S apt update",
        "db.internal:5432:*:app:{}",
        "Das Kennwort lautet {}.",
        "mot de passe : {}",
        "password: >-\n  one {} two 7\n",
        'DB_PASSWORD="one {} two 7"',
    ],
)
def test_password_is_told_by_column_program_and_words(text: str) -> None:
    assert SECRET not in redact(text.format(SECRET))


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO users (name, password) VALUES ('ann')",
        "name, password\n",
        "password    the password of the user\n",
        '"password": "At least 8 characters"',
        "arn:aws:secretsmanager:eu-central-1:123456789012:secret:prod/db-AbCdEf",
        "password: op://vault/db/password",
        "mysql -u root -p shop",
        "IDENTIFIED BY '<password>'",
        '{"auth": "YWJjZGVm"}',
        '{"auth": "w6TDtsO8"}',
        "set password = get()",
    ],
)
def test_what_is_said_of_passwords_stays(text: str) -> None:
    assert redact(text) == text


def test_characters_that_grow_in_lower_case_keep_their_place() -> None:
    assert redact(f'İİİ PASSWORD="{SECRET}"') == 'İİİ PASSWORD="[REDACTED:password]"'


WORST: Final = [
    *(
        "sk-",
        "eyJ",
        "eyJaaaaaaaaaa.",
        "token:",
        'secret":"',
        "://a:b",
        "x-",
        "a@b.",
        "-us",
        ":AA",
        "cookie: ",
    ),
    *(
        "password=abc123 ",
        "authorization: ",
        "x-a-token: ",
        "password is ",
        "key = a ",
        'token="a1"; ',
        "sshpass ",
    ),
    *(
        "\npassword=ab12",
        "name: token ",
        "name=api_key value=a ",
        "key: str = ",
        "token: >\n",
        "-pass pass:",
        "sc_a.",
    ),
    *(
        "mysql -p",
        "zip -P a ",
        "a,password\n",
        "| a | password |\n",
        "password  abcdef1\n",
        "INSERT INTO a (b) VALUES (",
    ),
    *(
        "recovery codes: ab12-cd34 ",
        "net user a ",
        "echo a | sudo -S ",
        "login abc123 ",
        "a:123:b:c:",
        "USER a\nPASS ",
    ),
    *("mot de passe: ", '"password" = "a1 b" ', "$6$ab$", "s.abc1", 'seed: "abcd '),
]
"""Texts that are made to be slow, each repeated; those with a name are dense with what is looked at closely."""


COLOURED: Final = [
    f"\x1b[01;31m\x1b[K{AWS}\x1b[m",
    f"\\x1b[32m{AWS}\\x1b[0m and \\u001b[1m{AWS}",
    f"\x1b[36mDB_PASSWORD\x1b[0m=\x1b[32m{SECRET}\x1b[0m",
    f'  \x1b[34;1m"password"\x1b[0m\x1b[1;39m: \x1b[0;32m"{SECRET}"\x1b[0m',
]


@pytest.mark.parametrize("text", COLOURED)
def test_colours_hide_no_secret(text: str) -> None:
    shown = redact(text)

    assert AWS not in shown
    assert SECRET not in shown
    assert shown.startswith(
        text[
            : min(
                map(text.find, [secret for secret in (AWS, SECRET) if secret in text])
            )
        ]
    )


def test_colours_stay() -> None:
    text = "\x1b[32m3f786850e387550fdab836ed7e6dc881de23001b\x1b[0m [0;1m key[0m]"

    assert redact(text) == text


@pytest.mark.figures
@pytest.mark.parametrize("piece", WORST)
def test_what_is_made_to_be_slow_takes_linear_time(piece: str) -> None:
    def look(size: int) -> None:
        redact(piece * (size // len(piece)))

    assert grows_in_proportion(look, 10_000, 80_000)
    # that is five seconds for a million characters
    assert takes_at_most(0.4, lambda: look(80_000))


def test_personal_details_are_found_when_they_are_asked_for() -> None:
    redactor = StrictRedactor(known=KnownSecrets(), finders=(personal_details,))

    text = "Mail ann.b@example.org, +49 170 1234567, (555) 123-4567, card 4111 1111 1111 1111, 123-45-6789."
    assert redactor.redact_text(text) == (
        "Mail [REDACTED:email-address], [REDACTED:phone-number], [REDACTED:phone-number],"
        " card [REDACTED:card-number], [REDACTED:social-security-number]."
    )


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-17T12:34:56.789+00:00",
        "550e8400-e29b-41d4-a716-446655440000",
        "1699999999123",
        "card 4111 1111 1111 1112",
        "@pytest.fixture and npm i @scope/name, a @ b.c",
    ],
)
def test_dates_ids_and_decorators_are_no_personal_details(text: str) -> None:
    assert (
        StrictRedactor(known=KnownSecrets(), finders=(personal_details,)).redact_text(
            text
        )
        == text
    )


def test_a_private_key_behind_a_certificate_is_found() -> None:
    block = "-----BEGIN {0}-----\n{1}\n-----END {0}-----\n"
    public = block.format("CERTIFICATE", "MIIBszCCAVmgAwIBAgIU")
    private = block.format("PRIVATE KEY", "MIGHAgEAMBMGByqGSM49AgEG")
    assert StrictRedactor().redact_text(public + private) == (
        public + "[REDACTED:private-key]\n"
    )
