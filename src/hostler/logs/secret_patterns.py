"""Finds secrets in any text and hides them: the one redactor of logs, traces, evidence, tickets, messages and records.

A secret is known by its name (`HF_TOKEN=…`, `"password": "…"`, `--api-key …`), by the header it stands in, by a prefix
that its maker gives it, or by its form (PEM, a URL with a password, a hook's address). Each rule goes through a text
once, from left to right: hostile text costs time in proportion to its length. Pure, so that the core may use it. It is
easy to get wrong in two ways: to hide half a value (a quoted one goes on past its spaces), and to hide what an operator
needs (a kernel's line about a key). `tests/unit/test_secret_patterns.py` has a table of each; ADR 177 says why the list
is our own.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar, cast

HIDDEN = "[hidden]"
"""Stands in the place of a secret."""
NAME_MOST = 256
"""Characters of a name that are looked at."""
_END_OF_NAME = 64
_BODY_LEAST = 60
_FAR = 32_768
"""Characters behind which the end of a block of PEM is another's."""

_SIGNS = (
    *("token", "secret", "passw", "passphrase", "credential", "psk", "key", "_pass", "_pwd", "cookie", "authorization"),
    *("bearer", "basic", "://", "-----", ".com/", "/n/", "hst_", "hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *(
        "github_pat_",
        "glpat-",
        "gldt-",
        "glrt-",
        "glrtr-",
        "glcbt-",
        "glptt-",
        "glft-",
        "glimt-",
        "glagent-",
        "glsoat-",
    ),
    *("gloas-", "xox", "xapp-", "akia", "asia", "abia", "acca", "aiza", "ya29.", "eyj", "sk-", "sk_live_", "sk_test_"),
    *("rk_live_", "rk_test_", "nvapi-", "hvs.", "hvb.", "npm_", "pypi-", "dckr_pat_", "whsec_", "sg.", "dop_v1_"),
)
"""Signs, in lower case, one in each text that the rules below are for; but for join tokens and lone base64."""
_SELDOM = "zjqx/wky_vbh-gpfmu.dclsntroiae:1234567890"
"""Letters of the signs, the seldom ones of a kernel's log first."""


def _any_of(signs: tuple[str, ...]) -> re.Pattern[str]:
    """A search for any of the signs by its most seldom letter: three times as fast as for one after the other."""
    by_letter: dict[str, list[str]] = {}
    for sign in signs:
        letter = min(sign, key=_SELDOM.index)
        at = sign.index(letter) + 1
        by_letter.setdefault(letter, []).append(f"(?<={re.escape(sign[:at])}){re.escape(sign[at:])}")
    return re.compile("|".join(f"{re.escape(letter)}(?:{'|'.join(rest)})" for letter, rest in by_letter.items()))


_SIGN = _any_of(_SIGNS)

# --- by name ----------------------------------------------------------------------------------------------------------

_KEYWORD = re.compile(
    r"token(?!i[sz])|secret|passw(?!ordless)|passphrase|credential|(?<![bq])psk|(?:pre)?-?shared[ _.-]{0,2}key"
    r"|(?:api|access|private|account)[ _.-]{0,2}key|(?-i:[A-Z0-9]_(?:PASS|PWD)(?![A-Za-z]))|authorization|cookie",
    re.IGNORECASE | re.ASCII,
)
_TAIL = re.compile(r"[\w.-]*+")
_LEAD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_SEPARATOR = re.compile(
    r"(?:\x1b\[[\d;]{0,8}m)?(?P<close>\\*+[\"'`]?)[\])]{0,2}[ \t]*+"
    r"(?:(?P<sets>:=|=>|==?|:|%3[dD])[ \t]*+(?:\x1b\[[\d;]{0,8}m)?"
    r"|(?P<of>,?\s{0,40}\\{0,8}[\"']?value\\{0,8}[\"']?[ \t]{0,8}[:=][ \t]*+)"
    r"|(?P<call>\((?=[\"']))|(?P<element>>))"
)
"""Between a name and its value: `=`, `":`, `=>`, `, "value":` of a list of variables, `("` of a call, `>` of XML."""
_OPTION = re.compile(r"(?:\\{0,8}[\"'])?(?:[\s,]|\\\r?\n){1,40}")
_BEFORE_OPTION = frozenset(" \t\r\n\"'`[(,=")
_INDENTED = re.compile(r"\r?\n[ \t]+(?=\S)")
_SET_IN = re.compile(r"\r?\n(?:(?P<margin>[ \t]*+)[^\s][^\r\n]*+|[ \t]*+(?=\r?\n))")
_QUOTE = re.compile(r"[bBuUrRfF]{0,2}(?P<slashes>\\*+)(?P<quote>\"\"\"|'''|[\"'`])")
_CLOSES = frozenset(" \t\r\n,;:)]}>&|\\/\"'`")
"""Characters behind a closing quote; anything else goes on with the word, as a shell reads it."""
_BARE = re.compile(r"(?:[^\s\\\"'`,;&]|\\(?!\\{0,8}[\"'`])[^\n]|[,;&](?![\s\"'\\]|$|[\w.-]++[\"']?[ \t]?[=:]))*+")
_BARE_QUOTE = re.compile(r"\\{0,8}[\"'`](?=[^\s,;:)\]}>\\\"'`])")
_ELEMENT = re.compile(r"[^<]*+")
_LINE = re.compile(r"[^\r\n]*+")
_FOLDED = re.compile(r"(?:\r?\n[ \t]+[^\r\n]*+)*+")

_HEADER = re.compile(r"(?:authorization|x-api-key|x-auth-key|x-auth-token|(?:^|[^a-z])cookie2?)$", re.IGNORECASE)
_COOKIE = re.compile(r"(?:^|[^a-z])cookie2?$|cookie", re.IGNORECASE)
_AUTHORIZATION_SCHEME = re.compile(
    r"(?:bearer|basic|digest|negotiate|token|apikey|geniekey|aws4-hmac-sha256)[ \t]+(?=\S)", re.IGNORECASE
)
_SAYS_NOTHING = frozenset(("", "true", "false", "null", "none", "nil", "yes", "no", "on", "off", "~", HIDDEN))
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?[a-z%/]{0,6}", re.IGNORECASE)
_COUNTS = re.compile(
    r"(?:tokens|secrets|credentials|passwords|cookies)(?:$|[_.-])"
    r"|(?:[_.-]|(?<=[a-z])(?=[A-Z]))(?:ttl(?:_?s)?|s|ms|seconds?|minutes|hours|days|count|len|length|size|limit|max|min"
    r"|age|expir[a-z]{0,8}|version|number|index|retries|attempts)$",
    re.IGNORECASE,
)
_PLACE = re.compile(r"(?:file|path|dir|directory|folder|mount)s?$", re.IGNORECASE)
_PLACE_VALUE = re.compile(r"(?:\.{0,2}|~)/[^\s\"'=?&]*+")
_REFERENCE = re.compile(r"(?:folder|file|vault|kubernetes):[\w./-]+")
_NOT_A_SECRET = re.compile(
    r"(?:error|exception|warning|notfound|failure|changed|revoked|expired|failed|refused|required|rotated|missing|invalid"
    r"|denied|_read|token_?id|token_?type|secret_?name|\.(?:path|service|socket|timer|mount|target|slice|scope|device)"
    r"|\.(?:py|c|h|go|rs|js|ts|json|ya?ml|toml|ini|conf|txt|log|pem|crt|sh|so|ko|md))$",
    re.IGNORECASE,
)
"""Ends of names that say something *about* a secret: an exception, a unit of systemd, a file of source."""
_PROGRAMS = frozenset(("passwd", "chpasswd", "gpasswd", "kpasswd", "smbpasswd"))
_WORDS = re.compile(r"\S++[ \t]++\S++[ \t]++\S")
_PAM = re.compile(r"pam_\w{1,40}\($")

# --- by form ----------------------------------------------------------------------------------------------------------

_PREFIXED = re.compile(
    r"hst_[0-9a-f]{12}_(?P<hst>[\w-]++)|hst_(?![0-9a-f]{12}(?:_|\b))[\w-]{6,}+"
    r"|hf_(?:(?=[a-z]*[0-9A-Z])[A-Za-z0-9]{8,}+|[a-z]{24,}+)"
    r"|gh[pousr]_[A-Za-z0-9]{8,}+|github_pat_\w{8,}+|gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|oas)-[\w.-]{8,}+"
    r"|(?:xox[a-z]|xapp)-[\w-]{6,}+|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}+|AIza[\w-]{16,}+|ya29\.[\w-]{16,}+"
    r"|sk-(?:(?=[A-Za-z_-]*[0-9])[\w-]{12,}+|[A-Za-z_-]{24,}+)|[sr]k_(?:live|test)_\w{8,}+"
    r"|nvapi-[\w-]{8,}+|hv[sb]\.[\w-]{8,}+|npm_[A-Za-z0-9]{16,}+|pypi-[\w-]{16,}+|dckr_pat_[\w-]{8,}+"
    r"|whsec_[\w+/=-]{8,}+|SG\.[\w-]{16,}+(?:\.[\w-]*+)?|dop_v1_\w{16,}+|eyJ[\w-]{10,}+(?:\.[\w-]*+)*+"
    r"|(?:hf_(?=[a-z]*[0-9A-Z])|gh[pousr]_|github_pat_|glpat-|nvapi-|xox[abeoprs]-|AKIA|ASIA|AIza)[\w-]{3,}+\Z"
)
"""Prefixes that their makers give to tokens; the last row is for one that is cut off at the end of the text."""
_BEGINS = re.compile(r"(?:\A|[^A-Za-z0-9_-]|\\[nrt]|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\[[\d;]{1,8}m)\Z")
"""Before such a token: no letter, digit or dash, but for an escape's."""
_JOIN = re.compile(r"\.[a-z0-9]{16}(?![A-Za-z0-9])")
_JOIN_ID = re.compile(r"[a-z0-9]{6}\Z")
_SCHEME = re.compile(
    r"\b(?i:bearer)[ \t]+(?!(?:auth\w*|tokens?|credentials?|scheme|required|realm|error|missing|invalid)\b)"
    r"(?P<bearer>[\w.~+/=-]{8,}+)"
    r"|\b(?i:basic)[ \t]+(?![A-Z]?[a-z]+(?![\w+/=]))(?P<basic>(?=[a-z]*[A-Z0-9+/=])[\w.~+/=-]{8,}+)"
)
_URL_END = re.compile(r"(?:[^\s\"'`<>]|[\"'`](?=[^\s,;:)\]}>\\\"'`]))*+")
_USER = re.compile(r"[^\s/:@?#\"'<>\[]*+:(?!\d{1,5}(?:[/?#,;)]|$))")
_LONG_USER = re.compile(r"(?=[A-Za-z_-]*\d)[\w-]{20,}+(?=@)")
_HOOK = re.compile(
    r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/"
    r"|webhook\.office\.com/|\.logic\.azure\.com(?::\d{1,5})?/|\.api\.powerplatform\.com(?::\d{1,5})?/"
    r"|api\.telegram\.org/bot|chat\.googleapis\.com/v1/spaces/|events\.pagerduty\.com/integration/"
    r"|hooks\.zapier\.com/hooks/|maker\.ifttt\.com/trigger/)(?!\[hidden\])(?P<rest>[^\s\"'`<>)\]}]++)",
    re.IGNORECASE,
)
_BOOT = re.compile(r"/n/[^/\s\"']{1,128}/(?P<secret>[0-9a-f]{16,64})(?![0-9a-f])")
"""The address at which one boot asks: its second part is that boot's secret (`core/boot/secrets`)."""
_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{1,48}-----")
_END = re.compile(r"-----END [A-Z0-9 ]{1,48}(?:-----)?")
_BREAK = re.compile(r"\n|\\{1,8}n")
_RUN = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{16,}+={0,2}|(?<=\\n)[A-Za-z0-9+/]{16,}+={0,2}")
_SHORT_RUN = re.compile(r"\s*[A-Za-z0-9+/]{1,64}={0,2}\s*(?:-{1,5}[A-Z -]*)?[\"'`]?\s*")
_PEM_HEADER = re.compile(r"\s*(?:Proc-Type|DEK-Info|Comment|Version|Key-ID)\b")
_BODY = re.compile(r"(?m)^[ \t]*(?P<body>[A-Za-z0-9+/]{60,76}+={0,2})[ \t\r]*$")

_Span = tuple[int, int]
_FactT = TypeVar("_FactT")


def redact(text: str) -> str:
    """The text with every secret in it replaced by HIDDEN; the text itself where there is none."""
    lone = "\n" in text or (len(text) >= _BODY_LEAST and " " not in text.strip())
    if not lone and _SIGN.search(text.lower()) is None and _JOIN.search(text) is None:
        return text  # nearly every line: the loop's record path is not to feel it
    spans = sorted(_spans(text))
    if not spans:
        return text
    pieces: list[str] = []
    done = -1
    for start, end in spans:
        if start > done:  # what overlaps or touches is one secret
            pieces += (text[max(done, 0) : start], HIDDEN)
        done = max(done, end)
    pieces.append(text[done:])
    return "".join(pieces)


def certainly_none(texts: Sequence[str]) -> bool:
    """Whether `redact` certainly leaves all of these texts as they are; one look at them together."""
    joined = "\0".join(texts)  # no sign has this character, so that none is seen across two texts
    if "\n" in joined or any(len(text) >= _BODY_LEAST and " " not in text.strip() for text in texts):
        return False
    return _SIGN.search(joined.lower()) is None and _JOIN.search(joined) is None


def is_secret(name: str, value: str) -> bool:
    """Whether the value that stands under this name is a secret, whatever it looks like."""
    return bool(value) and _KEYWORD.search(name[:NAME_MOST]) is not None and not _is_about(name[:NAME_MOST], value)


def redact_facts(facts: dict[str, _FactT]) -> dict[str, _FactT]:
    """The facts, with what is a secret by its name or its form hidden; the mapping itself where nothing is."""
    changed: dict[str, _FactT] = {}
    for name, value in facts.items():
        if isinstance(value, str) and value:
            kept = HIDDEN if is_secret(name, value) else redact(value)
            if kept != value:
                changed[name] = cast("_FactT", kept)
    return {**facts, **changed} if changed else facts


def _spans(text: str) -> Iterator[_Span]:
    yield from _join_tokens(text)
    if len(text) >= _BODY_LEAST and ("\n" in text or " " not in text.strip()):
        yield from (found.span("body") for found in _BODY.finditer(text) if _is_base64(found["body"]))
    lower = text.lower()
    if _SIGN.search(lower) is None:
        return
    yield from _named(text)
    yield from _prefixed(text)
    if "bearer" in lower or "basic" in lower:
        yield from (found.span(found.lastgroup or 0) for found in _SCHEME.finditer(text))
    if ".com/" in lower:
        yield from (found.span("rest") for found in _HOOK.finditer(text))
    if "/n/" in text:
        yield from (found.span("secret") for found in _BOOT.finditer(text))
    if "://" in text:
        yield from _passwords_of_urls(text)
    if "-----" in text:
        yield from _pem(text)


def _prefixed(text: str) -> Iterator[_Span]:
    """Tokens known by the prefix that their maker gives them; of Hostler's own the id stays."""
    for found in _PREFIXED.finditer(text):
        at = found.start()
        if text[at - 1 : at] not in _LEAD or _BEGINS.search(text, max(0, at - 12), at) is not None:
            yield found.span("hst") if found["hst"] else found.span()


def _is_base64(line: str) -> bool:
    """Whether it is base64 and not a digest, a word or a path."""
    return not (line.isupper() or line.islower() or line.isalpha() or line.isdigit() or line.startswith("/"))


def _named(text: str) -> Iterator[_Span]:
    """Values behind a name that says that they are secrets."""
    at = 0
    while (word := _KEYWORD.search(text, at)) is not None:
        start = word.start()
        while start > at and text[start - 1] in _LEAD:
            start -= 1
        at = _end(_TAIL, text, word.end())
        spans, at = _behind(text, start, text[max(start, at - NAME_MOST) : at], at)
        yield from spans


def _behind(text: str, start: int, name: str, at: int) -> tuple[list[_Span], int]:
    """The values of the name that ends at `at`, and where to go on."""
    found = _SEPARATOR.match(text, at)
    if found is None:
        option = text[start] == "-" and (start == 0 or text[start - 1] in _BEFORE_OPTION)
        gap = _OPTION.match(text, at) if option else None
        if gap is None or text.startswith("--", gap.end()):
            return [], at
        inside, end = _word(text, gap.end())
        return _unless_about(text, name, inside), max(end, at)
    if found["element"] is not None:
        if start == 0 or text[start - 1] not in "<:":
            return [], found.end()
        inside = (found.end(), _end(_ELEMENT, text, found.end()))
        return _unless_about(text, name, inside), inside[1]
    if _is_no_name(text, start, name, found) or _NOT_A_SECRET.search(name[-_END_OF_NAME:]) is not None:
        return [], found.end()
    inside, end = _value(text, start, name, found)
    spans = _unless_about(text, name, inside)
    typed = _SEPARATOR.match(text, end) if spans and found["sets"] == ":" else None
    if typed is not None and typed["sets"] == "=":  # `password: str = "…"`
        second, end = _word(text, typed.end())
        spans += _unless_about(text, name, second)
    return spans, max(end, found.end())


def _unless_about(text: str, name: str, inside: _Span) -> list[_Span]:
    return [] if inside[0] >= inside[1] or _is_about(name, text[slice(*inside)]) else [inside]


def _is_no_name(text: str, start: int, name: str, found: re.Match[str]) -> bool:
    """Whether it only looks like a name: a program that says something, a path, a service of PAM, a kernel's cookie."""
    if found["sets"] != ":":
        return found["sets"] is not None and not found["close"] and _COOKIE.search(name[-_END_OF_NAME:]) is not None
    before = text[start - 1] if start else ""
    spaced = found.end() > found.end("close") + 1
    if before == "/" and spaced and not found["close"]:
        return True
    if before == "(" and _PAM.search(text, max(0, start - 48), start) is not None:
        return True
    return name.lower() in _PROGRAMS and spaced and _WORDS.match(text, found.end()) is not None


def _value(text: str, start: int, name: str, found: re.Match[str]) -> tuple[_Span, int]:
    """The inside of the value behind a separator, and its end."""
    at = found.end()
    if found["sets"] is None or _QUOTE.match(text, at) is not None:
        return _word(text, at)
    if _HEADER.search(name[-_END_OF_NAME:]) is not None:
        at = _end(_AUTHORIZATION_SCHEME, text, at)
        end = _end(_FOLDED, text, _end(_LINE, text, at))
        return (at, end), end
    if found["sets"] != ":":
        return _word(text, at)
    indent = _indent(text, start)
    if indent >= 0 and (text[at - 1] in " \t" or text[at : at + 1] in ("\r", "\n")):
        word = _word(text, at)
        return word if _is_count(name, text[slice(*word[0])]) else _of_document(text, at, indent)
    return _word(text, _end(_INDENTED, text, at))


def _indent(text: str, start: int) -> int:
    """How far a name is set in that is the first on its line; -1 where it is not."""
    line = start
    while line and text[line - 1] in " \t\"'-":
        line -= 1
    return start - line if line == 0 or text[line - 1] in "\r\n" else -1


def _of_document(text: str, at: int, indent: int) -> tuple[_Span, int]:
    """A value of YAML, or of a line that is a name and its value: to the line's end, and the lines set in below it."""
    end = _end(_LINE, text, at)
    while (line := _SET_IN.match(text, end)) is not None:
        if line["margin"] is not None and len(line["margin"]) <= indent:
            break
        end = line.end()
    return (at, end), end


def _word(text: str, at: int) -> tuple[_Span, int]:
    """The inside of a value, quoted or not, and the value's end."""
    if text.startswith(HIDDEN, at):
        return (at, at + len(HIDDEN)), at + len(HIDDEN)
    opened = _QUOTE.match(text, at)
    if opened is None:
        end = _bare_end(text, at)
        return (at, at + len(text[at:end].rstrip(")]}"))), end
    begin, quote = opened.end(), opened["quote"]
    close = _closing(text, begin, quote, len(opened["slashes"]))
    if close < 0:
        return (begin, len(text)), len(text)
    end = close + len(quote)
    inside = close - _slashes(text, close, begin) if opened["slashes"] else close
    if end < len(text) and text[end] not in _CLOSES:  # as a shell reads it: 'ab'cd is one word
        end = inside = _bare_end(text, end)
    return (begin, max(begin, inside)), end


def _bare_end(text: str, at: int) -> int:
    """End of a word that is not quoted; a quote within it goes on to its other half, if that is on the line."""
    given_up: set[str] = set()
    while True:
        at = _end(_BARE, text, at)
        quote = _BARE_QUOTE.match(text, at)
        if quote is None:
            return at
        mark = quote[0][-1]
        at = quote.end()
        if mark in given_up:
            continue
        line = text.find("\n", at)
        close = text.find(mark, at, line if line >= 0 else len(text))
        if close < 0:
            given_up.add(mark)
        else:
            at = close + 1


def _closing(text: str, begin: int, quote: str, slashes: int) -> int:
    """Place of the quote that closes one opened behind so many backslashes; -1 where the text ends before it."""
    at = begin
    while (close := text.find(quote, at)) >= 0:
        if _is_closed_by(_slashes(text, close, at), slashes.bit_length()):
            return close
        at = close + 1
    return -1


def _slashes(text: str, at: int, least: int) -> int:
    """The backslashes that stand before `at`, not before `least`."""
    first = at
    while first > least and text[first - 1] == "\\":
        first -= 1
    return at - first


def _is_closed_by(run: int, depth: int) -> bool:
    """Whether a quote behind `run` backslashes ends a text that is quoted `depth` times over, or one around it."""
    while depth and run % 2:
        run, depth = (run - 1) // 2, depth - 1
    return run % 2 == 0


def _is_about(name: str, value: str) -> bool:
    """Whether the name and value tell *about* a secret: a number of tokens, a file's path, an error, yes or no."""
    said, end = value.strip().strip("\\\"'"), name[-_END_OF_NAME:]
    if said.lower() in _SAYS_NOTHING or _NOT_A_SECRET.search(end) is not None:
        return True
    if _is_count(name, said):
        return True
    if _PLACE.search(end) is not None and _PLACE_VALUE.fullmatch(said) is not None:
        return True
    return end.lower() == "secret" and _REFERENCE.fullmatch(said) is not None


def _is_count(name: str, value: str) -> bool:
    """Whether it is a number under the name of something that is counted or measured."""
    return _NUMBER.fullmatch(value) is not None and _COUNTS.search(name[-_END_OF_NAME:]) is not None


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found is not None else at


def _join_tokens(text: str) -> Iterator[_Span]:
    """Bootstrap tokens of Kubernetes: six characters, a point, sixteen."""
    for found in _JOIN.finditer(text):
        at = found.start()
        if _JOIN_ID.search(text, max(0, at - 6), at) is not None and (at < 7 or text[at - 7] not in _LEAD):
            yield at + 1, found.end()


def _passwords_of_urls(text: str) -> Iterator[_Span]:
    """Passwords between a URL's scheme and its host; a user as long as a token is one."""
    at = text.find("://")
    while at >= 0:
        stop = _end(_URL_END, text, at)
        last = text.rfind("@", at, stop)
        while at >= 0:
            begin = at + 3
            user = _USER.match(text, begin, stop)
            if user is not None and user.end() < last:
                yield user.end(), last
            elif (alone := _LONG_USER.match(text, begin, stop)) is not None:
                yield alone.span()
            at = text.find("://", begin, stop)
        at = text.find("://", stop)


def _pem(text: str) -> Iterator[_Span]:
    """Blocks of PEM, whole; of one that is cut off at either end what there is of it."""
    done = 0
    ends = _END.finditer(text)
    end = next(ends, None)
    begin = _BEGIN.search(text)
    while begin is not None:
        after = _BEGIN.search(text, begin.end())
        while end is not None and end.start() < begin.start():
            yield from _tail_of_pem(text, done, end)
            done, end = end.end(), next(ends, None)
        least = after.start() if after is not None else len(text)
        if end is not None and end.start() < min(least, begin.end() + _FAR):
            done, end = end.end(), next(ends, None)
        else:
            done = _end_of_cut_pem(text, begin.end(), least)
        yield begin.start(), done
        begin = after
    while end is not None:
        yield from _tail_of_pem(text, done, end)
        done, end = end.end(), next(ends, None)


def _tail_of_pem(text: str, least: int, end: re.Match[str]) -> Iterator[_Span]:
    """The end of a block that begins before the text: every run of base64 before it."""
    for run in _RUN.finditer(text, max(least, end.start() - _FAR), end.start()):
        yield run.span()
    yield end.span()


def _end_of_cut_pem(text: str, at: int, limit: int) -> int:
    """End of a block without an end: the first line without base64."""
    stop = at
    while at <= limit:
        found = _BREAK.search(text, at, limit)
        line = text[at : found.start() if found is not None else limit]
        runs = list(_RUN.finditer(line))
        if runs:
            stop = at + runs[-1].end()
        elif line.strip() and _SHORT_RUN.fullmatch(line) is not None:
            return at + len(line.rstrip().rstrip("\"'`"))
        elif line.strip() and _PEM_HEADER.match(line) is None:
            return stop
        if found is None:
            return stop
        at = found.end()
    return stop
