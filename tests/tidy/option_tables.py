# SPDX-License-Identifier: Apache-2.0
"""docs/options.md names every option of the public headers with its default, every handler function
with its parameters; the options of a publisher and its sessions have a key in the configuration.
An option has one name: `queue_limit_bytes` in C++, `queue_limit` in YAML, `--queue-limit` on the
command line.
"""

import pathlib
import re
import sys

# Options of outgoing connections and of streams, options with several keys, and what `loops` determines.
NOT_IN_YAML = ("keep_limit_bytes", "receive_memory", "connect_timeout", "remote_writes", "never_immediate", "publisher", "fids")
# An option with a short form (`loop: busy`), and flags of another thing than the option of this name.
SHORT_FORMS = {"mode": "`loop`, `mode`"}
OTHER_FLAGS = ("--fid", "--log-file", "--metrics", "--metrics-fids", "--metrics-allow-remote-anonymous")
UNIT = r"_(bytes|messages|ms|us|ns|s)$"
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def structs(text):
    """(qualified name, body) of each struct of options."""
    for found in re.finditer(r"^( *)struct (\w*Options) \{\n(.*?)^\1\};", text, re.M | re.S):
        owners = re.findall(r"^class (?:NETIO_EXPORT )?(\w+)", text[:found.start()], re.M)
        yield (f"{owners[-1]}::{found[2]}" if found[1] else found[2]), found[3]


def fields(body):
    """(name, default) of each member."""
    body = re.sub(r"//[^\n]*", "", body)
    for found in re.finditer(r"^ *[\w:]+(?:<[^;={]+>)?\*? (\w+)(?:\s*=\s*([^;]*)|\{([^;]*)\})?;", body, re.M):
        yield found[1], found[2] or found[3] or ""


def value(text):
    """A number, a word, or nothing where the default is an aggregate."""
    text = re.sub(r"std::\w+\{(\d+)\}", r"\1", text.strip().replace("'", ""))
    if re.fullmatch(r"[\d\s*<()+-]+", text):
        return eval(text)
    return None if re.search(r"[{(]", text) else text.split("::")[-1].strip('"') or "none"


def shown(text):
    """The same of the page."""
    number = re.fullmatch(r"(\d+)(?: (KiB|MiB|GiB|ms|µs|ns))?", text)
    return int(number[1]) * UNITS.get(number[2], 1) if number else text.strip("`")


def handlers(text):
    for found in re.finditer(r"virtual void (on_\w+\([^{;=]*?\))(?: \{|\s*=)", text):
        yield re.sub(r"\s+", " ", re.sub(r"/\*(\w+)\*/", r"\1", found[1])).replace("( ", "(")


def key_of(option):
    return re.sub(UNIT, "", option)


def flag_of(option):
    return "--" + key_of(option).replace("_", "-")


def wrong_names(text, options):
    """(name, option) where a row of the configuration or a flag is not called as its option."""
    for found in re.finditer(r'\badd\w*\(\s*"(\w+)",\s*(?:\w+\()?&[\w:]+::(\w+)', text):
        if found[2] in options and found[1] != key_of(found[2]):
            yield found[1], found[2]
    for found in re.finditer(r'\badd\w*\((?:\s*\*?\w+,)?\s*"(--[\w-]+)",\s*(?:\w+(?:\.|->))*(\w+),', text):
        if found[2] in options and found[1] not in (flag_of(found[2]), *OTHER_FLAGS):
            yield found[1], found[2]


assert list(wrong_names('rows.add("spin_us", &Loop::spin, 1); rows.add("x", option(&Options::spin));'
                        'rows.add("spin", &Loop::spin); rows.add("mode", &Config::buffered);', {"spin"})) \
    == [("spin_us", "spin"), ("x", "spin")]
assert list(wrong_names('add_count(*command, "--senders", arguments->socket.peer_limit, "");'
                        'command.add_flag("--peer-limit", peer_limit, "")', {"peer_limit"})) \
    == [("--senders", "peer_limit")]
root = pathlib.Path(__file__).resolve().parents[2]
page = (root / "docs" / "options.md").read_text()
sections = {re.search(r"`(.+?)`", part)[1]: part for part in re.split(r"^## ", page, flags=re.M)[1:]
            if part.startswith("`")}
missing = []
count = 0
listed = re.findall(r"^    (\S+?\.hpp)\)?$", (root / "cmake/public_headers.cmake").read_text(), re.M)
for path in listed:
    if path == "netio/transport.hpp":  # its handlers are the sessions
        continue
    text = (root / path).read_text()
    for name, body in structs(text):
        rows = {row[1]: [cell.strip() for cell in row[0].split("|")[1:-1]]
                for row in re.finditer(r"^\| `(\w+)` \|.*$", sections.get(name, ""), re.M)}
        for field, default in fields(body):
            count += 1
            if field not in rows:
                missing.append(f"docs/options.md: no row for {field} in the section `{name}` ({path})")
            elif value(default) is not None and rows[field][2] and not rows[field][2].startswith("[") \
                    and shown(rows[field][2]) != value(default):
                missing.append(f"docs/options.md: {name}: {field} is {default} in {path}, not {rows[field][2]}")
        missing += [f"docs/options.md: {name} has no {field} in {path}" for field in rows
                    if field not in dict(fields(body)) and len(rows[field]) == 5]
    missing += [f"docs/options.md: does not have {function} of {path}" for function in handlers(text)
                if f"| `{function}` |" not in page]
# Every option of the library is also an option of the program.
keys = set(re.findall(r"^\| `(\w+)` \|", (root / "docs/configuration.md").read_text(), re.M))
for name in ("PublishSocketBase::Options", "BufferedPublishSocket::Options", "PublishSocket::Options", "SessionOptions"):
    for row in re.finditer(r"^\| `(\w+)` \| (.*?) ?\|.*$", sections[name], re.M):
        if len(row[0].split("|")) == 7 and row[1] not in NOT_IN_YAML and not row[2]:
            missing.append(f"docs/options.md: {name}: {row[1]} has no key in a configuration")
for row in re.finditer(r"^\| `\w+` \| (`[^|]*`) \|[^|]*\|[^|]*\|[^|]*\|$", page, re.M):
    missing += [f"docs/options.md: {key} is not in docs/configuration.md"
                for key in re.findall(r"`(\w+)`", row[1]) if key not in keys]
# One name for one option.
options = {row[1] for section in sections.values() for row in re.finditer(r"^\| `(\w+)` \|.*$", section, re.M)
           if len(row[0].split("|")) == 7}
for row in re.finditer(r"^\| `(\w+)` \| (`[^|]*`) \|[^|]*\|[^|]*\|[^|]*\|$", page, re.M):
    if row[2] not in (f"`{key_of(row[1])}`", SHORT_FORMS.get(row[1])):
        missing.append(f"docs/options.md: {row[1]} is {row[2]} in YAML, not `{key_of(row[1])}`")
for row in re.finditer(r"^\| (`--[^|]*) \|[^|]*\| ([^|]*) \|$", page, re.M):
    flags = {flag_of(option) for option in re.findall(r"`(\w+)`", row[2])}
    missing += [f"docs/options.md: {flag} does not set an option of this name"
                for flag in re.findall(r"`(--[\w-]+)`", row[1]) if flag not in flags]
missing += [f"docs/configuration.md: {key} has a unit in its name" for key in keys if re.search(UNIT, key)]
for path in sorted((root / "apps").glob("*/*.cpp")):
    missing += [f"{path.relative_to(root)}: {name} sets {option}; call it {key_of(option)}"
                for name, option in wrong_names(path.read_text(), options)]
print("\n".join(missing) or f"{count} options are in docs/options.md")
sys.exit(bool(missing) or count < 90)
