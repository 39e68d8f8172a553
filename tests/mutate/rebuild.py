# SPDX-License-Identifier: Apache-2.0
"""Builds a test program with some files replaced, from the objects of a finished build.

The replacements are in a separate folder that the compiler searches first; neither the build nor
the sources are changed. Only the objects that include a replaced file are compiled again.
"""

import json
import pathlib
import shlex
import subprocess

DEADLINE_S = 300  # limit of one compilation or link
LINKER = "-fuse-ld=mold"  # a program is linked for each fault


class DoesNotBuild(Exception):
    pass


def output_of(entry):
    words = shlex.split(entry["command"])
    return words[words.index("-o") + 1]


class Build:
    def __init__(self, root, folder):
        self.root = root
        self.folder = folder
        entries = json.loads((folder / "compile_commands.json").read_text("utf-8"))
        self.compilations = {output_of(entry): entry for entry in entries}
        self.dependencies = self._read_dependencies()
        self._closures = {}

    def _ninja(self, *arguments):
        command = ["ninja", "-C", str(self.folder), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return [line for line in done.stdout.split("\n") if not line.startswith("ninja: Entering")]

    def _read_dependencies(self):
        """{object: the project's files that it includes, as paths from the root}"""
        seen, current = {}, None
        for line in self._ninja("-t", "deps"):
            if line.startswith("    "):
                path = (self.folder / line.strip()).resolve()
                if path.is_relative_to(self.root):
                    seen[current].add(path.relative_to(self.root).as_posix())
            elif ": #deps" in line:
                current = line.split(": #deps")[0]
                seen[current] = {self.source_of(current)} if current in self.compilations else set()
        return seen

    def source_of(self, output):
        return pathlib.Path(self.compilations[output]["file"]).resolve().relative_to(self.root).as_posix()

    def _last_command(self, target):
        lines = [line for line in self._ninja("-t", "commands", target) if line]
        if not lines:
            raise DoesNotBuild(f"no such target: {target}")
        return [word for word in shlex.split(lines[-1]) if word not in (":", "&&")]

    def link(self, program):
        """(words of the link command, {archive: its objects})"""
        if program not in self._closures:
            words = self._last_command(f"bin/{program}")
            archives = {}
            for word in words:
                if word.endswith(".a") and not word.startswith("/") and word not in archives:
                    archives[word] = [w for w in self._last_command(word) if w.endswith(".o")]
            self._closures[program] = words, archives
        return self._closures[program]

    def objects(self, program):
        words, archives = self.link(program)
        own = [word for word in words if word.endswith(".o")]
        return own + [each for objects in archives.values() for each in objects if each not in own]

    def affected(self, program, files):
        files = set(files)
        return [each for each in self.objects(program) if self.dependencies.get(each, set()) & files]

    def compile(self, output, files, overlay):
        """Compiles one file and returns the path of the new object."""
        entry = self.compilations[output]
        made = overlay / "objects" / output.replace("/", "_")
        words = shlex.split(entry["command"])
        source = self.source_of(output)
        first_include = next(i for i, word in enumerate(words) if word.startswith(("-I", "-isystem", "-o")))
        words[words.index("-o") + 1] = str(made)
        if source in files:
            words[words.index("-c") + 1] = str(overlay / source)
        elif "/Unity/" in source:
            words[words.index("-c") + 1] = str(self._unity_source(source, files, overlay))
        words[first_include:first_include] = [f"-I{overlay}"]
        run_or_refuse([*words, "-w"], entry["directory"])
        return made

    def _unity_source(self, source, files, overlay):
        """A unity source that includes the replaced files in place of the originals."""
        text = (self.root / source).read_text("utf-8")
        for each in files:
            text = text.replace(f'#include "{self.root / each}"', f'#include "{overlay / each}"')
        copy = overlay / source
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, "utf-8")
        return copy

    def program(self, name, files, overlay, objects):
        """Compiles `objects`, links them with the rest of the program and returns its path."""
        for path, text in files.items():
            target = overlay / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                target.write_text(text, "utf-8")
        (overlay / "objects").mkdir(exist_ok=True)
        made = {}
        for each in objects:
            path = overlay / "objects" / each.replace("/", "_")
            made[each] = str(path if path.exists() else self.compile(each, files, overlay))
        words, archives = self.link(name)
        out, replaced = [], set()
        for word in words:
            if word in archives and any(each in made for each in archives[word]):
                # The archive's objects instead of the archive, which would contribute the old
                # object.
                if word not in replaced:
                    out += [made.get(each, each) for each in archives[word]]
                replaced.add(word)
            else:
                out.append(made.get(word, word))
        result = overlay / name
        out[out.index("-o") + 1] = str(result)
        run_or_refuse([*out, LINKER], self.folder)
        return result


def run_or_refuse(words, folder):
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=DEADLINE_S)
    except subprocess.TimeoutExpired as error:
        raise DoesNotBuild("compiling took too long") from error
    if done.returncode != 0:
        raise DoesNotBuild(done.stderr[-2000:] or done.stdout[-2000:])
