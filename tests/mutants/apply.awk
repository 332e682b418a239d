# tests/mutants/apply.awk: a C file with one change; strings are joined and white space is one blank, both ways.
#   TEXT="which must be complete" awk -f apply.awk F.c          the statement that contains the text is gone
#   TEXT="if (x) {" WITH="if (0) {" awk -f apply.awk F.c        the text is another
# A statement that is gone and was the last of a function returned a refusal: TL_OK takes its place. Exit 1: the text is
# not there.

# Joins what stands on lines that are indented by more than one level with the line before.
{ source = source (NR > 1 ? "\n" : "") $0 }

function join(code) {
    gsub(/" *\n +"/, "", code)
    gsub(/ *\n +/, " ", code)
    return code
}

# The ends of the statement around position `at`: after the `;`, `{` or `}` before it, and its own `;`.
function find_statement(code, at,    i, c, depth, quoted) {
    first = 1
    depth = quoted = 0
    for (i = 1; i <= length(code); i++) {
        c = substr(code, i, 1)
        if (c == "\\") {
            i++
        } else if (c == "\"") {
            quoted = !quoted
        } else if (!quoted) {
            depth += (c == "(") - (c == ")")
            if (depth == 0 && c ~ /[;{}]/) {
                last = i
                if (i >= at)
                    return
                first = i + 1
            }
        }
    }
}

BEGIN { text = ENVIRON["TEXT"]; with = ENVIRON["WITH"] }
END {
    count = split(source, functions, /\n}\n/) # a function is looked at by itself
    for (n = 1; n <= count && !at; n++) {
        code = join(functions[n])
        at = index(code, text)
        functions[n] = at ? code : functions[n]
    }
    if (!at)
        exit 1
    if (with != "") {
        code = substr(code, 1, at - 1) with substr(code, at + length(text))
    } else {
        find_statement(code, at)
        statement = substr(code, first, last - first + 1)
        ends = statement ~ /^ *return / && substr(code, first - 1, 1) != "{"
        code = substr(code, 1, first - 1) (ends ? " return TL_OK;" : "") substr(code, last + 1)
    }
    functions[n - 1] = code
    for (n = 1; n <= count; n++)
        printf "%s%s", functions[n], n < count ? "\n}\n" : "\n"
}
