# SPDX-License-Identifier: Apache-2.0
"""How large a class may be: shape_rules.py [ROOT] fails if one is larger and not named below.

Bools count where there are functions: as state they multiply, as options they are what a user may
choose.
"""

import pathlib
import re
import sys

from tree import cpp, line_of, read_tree

MEMBER_LIMIT = 16
BOOL_LIMIT = 3
FUNCTION_LIMIT = 30
EXCEPTION_LIMIT = 5
PURE = "without I/O, explored exhaustively as one: its state is the protocol's"
EXCEPTIONS = {
    ("stream/core/sender.hpp", "Sender"): PURE,
    ("stream/core/receiver.hpp", "Receiver"): PURE,
}


def without_nested(text):
    """Without what stands in template arguments, and with empty parentheses."""
    before = None
    while before != text:
        before = text
        text = re.sub(r"<[^<>()]*>", "", text)
        text = re.sub(r"<[^<>]*>", "", text)
        text = re.sub(r"\([^()]+\)", "()", text)
        text = text.replace("()()", "()")
    return text


def without_marks(text):
    return re.sub(r"\[\[.*?\]\]|\bNETIO_EXPORT\b|\balignas\s*\([^)]*\)", " ", text, flags=re.S)


def class_name(head):
    """Of the class that is defined after this, or None."""
    plain = without_nested(without_marks(head))
    if re.search(r"\benum\b|=", plain):
        return None
    found = re.search(
        r"(?:^|[\s;:])(?:class|struct|union)\b\s*([\w:]*)\s*(?:final\b\s*)?(?::(?!:).*)?$", plain, re.S)
    return found and (found[1] or "(unnamed)")


class Measured:
    def __init__(self, name, line):
        self.name, self.line = name, line
        self.members, self.bools, self.functions = [], [], []

    def take(self, text):
        """One declaration of the class's body."""
        text = re.sub(r"^\s*(?:(?:public|private|protected)\s*:(?!:)\s*)+", "", text)
        text = without_marks(text).strip()
        text = re.sub(r"^template\s*<.*?>\s*(?=\w)", "", text, flags=re.S)
        if not text or re.match(r"(using|friend|typedef|static_assert|enum)\b", text):
            return
        declarator = re.split(r"[={]", without_nested(text), maxsplit=1)[0]
        if "(" in declarator or re.search(r"\boperator\b", declarator):
            if not re.search(r"=\s*(delete|default)\s*$", text):
                self.functions.append(text)
        elif re.match(r"(static|inline|constexpr)\b", text):
            return
        elif re.match(r"(class|struct|union)\s+\w+\s*$", declarator):
            return
        elif re.search(r"\w[\s*&]+\w", declarator):
            self.members.append(text)
            if re.match(r"(?:mutable\s+)?bool\s+\w", text):
                self.bools.append(text)

    def excess(self):
        states = len(self.bools) if self.functions else 0
        for count, limit, what in ((len(self.members), MEMBER_LIMIT, "data members"),
                                   (states, BOOL_LIMIT, "members of type bool"),
                                   (len(self.functions), FUNCTION_LIMIT, "functions")):
            if count > limit:
                yield f"{count} {what} (at most {limit})"


BODY = object()  # of a function, an enumeration or an initialiser


def classes(bare):
    """Every class of a source without comments and literals, measured."""
    scopes, found = [], []  # a scope is a Measured, BODY, or None: a namespace
    head = parens = 0  # where the declaration began
    for match in re.finditer(r"[{}();]", bare):
        sign, text = match[0], bare[head : match.start()]
        if sign in "()":
            parens += 1 if sign == "(" else -1
        elif sign == "{":
            name = class_name(text) if parens == 0 and BODY not in scopes[-1:] else None
            if name:
                begin = head + len(text) - len(text.lstrip())
                scopes.append(Measured(name, line_of(bare, begin)))
                found.append(scopes[-1])
                head = match.end()
            elif parens == 0 and re.search(r"\bnamespace\b", text):
                scopes.append(None)
                head = match.end()
            else:
                scopes.append(BODY)
        elif sign == "}" and scopes:
            if scopes.pop() is not BODY:
                head = match.end()
            elif BODY not in scopes[-1:]:
                goes_on = re.match(r"\s*[{,;)]", bare[match.end() :])  # it was an initialiser's
                if not goes_on:
                    if scopes and scopes[-1]:
                        scopes[-1].take(bare[head : match.end()])
                    head = match.end()
        elif sign == ";" and parens == 0 and BODY not in scopes[-1:]:
            if scopes and scopes[-1]:
                scopes[-1].take(text)
            head = match.end()
    return found


def large_classes(tree):
    for source in cpp(tree):
        if source.top in ("netio", "pubsub", "stream", "apps"):
            for measured in classes(source.bare):
                excess = ", ".join(measured.excess())
                if excess and (source.path, measured.name) not in EXCEPTIONS:
                    yield source.path, measured.line, measured.name, excess


def notes(tree):
    for path, line, name, excess in large_classes(tree):
        yield f"{path}:{line}: {name} has {excess}"


def self_test():
    text = """namespace n {
class NETIO_EXPORT A final : public B<int (*)()>, private C {
  public:
    struct Options {
        int count = 3;
        bool flag;
    };
    enum class Kind : int { one, two };
    A() : x_{1}, y_{f()} {}
    explicit A(std::function<void(int)> f = {});
    A(const A&) = delete;
    template <class T> bool g(T t) const { return t({1}); }
    [[nodiscard]] bool operator==(const A&) const = default;
    virtual void h() = 0;

  private:
    friend class D;
    static constexpr int limit = 3;
    std::function<void()> f_;
    bool a_ = false, *unused_;
    std::array<int, 3> x_{1};
    E& e_;
    std::unique_ptr<E> y_{std::make_unique<E>(1)};
    struct { int z = 1; } w_;
};
}
"""
    found = {each.name: (len(each.members), len(each.bools), len(each.functions)) for each in classes(text)}
    expected = {"A": (5, 1, 4), "Options": (2, 1, 0), "(unnamed)": (1, 0, 0)}
    assert found == expected, found


self_test()
assert len(EXCEPTIONS) <= EXCEPTION_LIMIT

if __name__ == "__main__":
    here = pathlib.Path(sys.argv[1] if sys.argv[1:] else pathlib.Path(__file__).resolve().parents[2])
    large = list(large_classes(read_tree(here)))
    for path, line, name, excess in large:
        print(f"{path}:{line}: {name} has {excess}: cut the class, not the file")
    sys.exit(bool(large))
