#!/bin/sh
# tests/circles.sh BUILD: whether files call each other in a circle, told from the symbols of the objects under BUILD (make all).
# Some belong together: a table of functions that ask the table, or functions that recurse through several files. Those are
# listed below and count as one; any other circle is an error. Usage, from the top of the tree: tests/circles.sh build/release
build=$1
[ -d "$build" ] || { echo "usage: tests/circles.sh BUILD"; exit 2; }

# files (a pattern): why they are one
together="
ir/expr/:constructors fold, and folding constructs
ir/graph/graph(_print)?\.c:a graph's dump prints it
ir/program/program(_rewrite)?\.c:statements are visited where they are made
ir/text/parse.*:blocks hold expressions that hold blocks
ir/interpret/:statements, expressions and calls recurse
frontend/operators\.c|frontend/(node/(axis_rules|check_constants|shape_rules_control|infer_shapes|fold_node|bind_operands)|graph/(assign_blocks|remove_identities)|lower/lower_(elementwise|kernel))\.c:rows name functions that ask other rows, for bodies too
frontend/call/:what is known of a number is asked by the nodes that compute it
frontend/import/:importers are each other's, through their table
frontend/onnx/:functions hold nodes that call functions, and a model is unpacked, imported and dropped by one of several
schedule/[a-z_]*\.c|schedule/prim/:a trace applies primitives, which append to a trace
schedule/sketch/:rules call each other through their table
codegen/math/:functions call each other through their table
codegen/emulate/:threads of a team make calls, and calls make the team wait, or end it
codegen/emit/:statements, expressions and accesses recurse
tuner/measure/workers_(dispatch|queue)\.c:what is finished makes room for what is next
tuner/search/(explorer|measure_again)\.c:an explorer hears appeals
driver/verb/verb(s|_complete|_man)\.c:verbs that list the verbs"

pairs=$(find "$build" -name '*.o' ! -path '*/tests/*' | xargs nm -A 2>/dev/null | awk -v build="$build/" -v together="$together" '
    BEGIN {
        rows = split(together, lines, "\n")
        for (i = 1; i <= rows; i++) {
            sub(/:[^:]*$/, "", lines[i])
            pattern[i] = "^(" lines[i] ")"
        }
    }
    function group(file, i) {
        for (i = 1; i <= rows; i++)
            if (lines[i] != "" && file ~ pattern[i])
                return "(" lines[i] ")"
        return file
    }
    {
        file = substr($1, length(build) + 1)
        sub(/\.o:.*/, ".c", file)
        if (!(file in of)) { # "": its source is gone
            of[file] = (getline line <file) < 0 ? "" : group(file)
            close(file)
        }
        if (of[file] == "")
            next
        if (NF == 3 && $2 == "U") {
            wants[++count] = of[file]
            wanted[count] = $3
        } else if ($2 ~ /^[TDBRVWC]$/) {
            has[$3] = of[file]
        }
    }
    END {
        for (i = 1; i <= count; i++)
            if (wanted[i] in has && has[wanted[i]] != wants[i])
                print wants[i], has[wanted[i]]
    }' | sort -u)
[ -n "$pairs" ] || { echo "circles: no objects under $build"; exit 2; }
if circles=$(printf '%s\n' "$pairs" | tsort 2>&1 >/dev/null) && [ -z "$circles" ]; then
    echo "circles: none"
else
    printf '%s\n' "$circles" | sed 's/^tsort: -: input contains a loop:/circles: these call each other:/; s/^tsort: /    /'
    exit 1
fi
