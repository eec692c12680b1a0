allow { input.method == "GET" }
---
allow { input.method == "PUT" }
---
allow { input.roles[_] == "admin" }
---
allow { input.roles[_] != "admin" }
---
allow { not input.roles[0] == "dev" }
---
allow { some i; input.roles[i] == "admin"; i > 0 }
---
import future.keywords.in
allow { some role in input.roles; startswith(role, "adm") }
---
import future.keywords.in
allow { some i, role in input.roles; i == 1; role == "admin" }
---
import future.keywords.in
allow { "admin" in input.roles }
---
import future.keywords.in
allow { not "admin" in input.roles }
---
import future.keywords.every
allow { every role in input.roles { count(role) > 2 } }
---
import future.keywords.every
allow { every i, role in input.roles { i < 1 } }
---
import future.keywords.every
allow { every role in [] { role == 1 } }
---
import future.keywords.if
import future.keywords.contains
deny contains "no" if input.method == "GET"
allow if count(deny) == 0
---
deny["no"] { input.method == "PUT" }
allow { count(deny) == 0 }
---
deny[msg] { msg := input.roles[_] }
allow { deny["admin"]; not deny["root"] }
---
deny[msg] { input.method == "GET"; msg := "get" }
allow { deny != set() }
---
users[name] = role { name := input.user.name; role := input.roles[1] }
allow { users.alice == "admin" }
---
level = 3 { input.method == "GET" } else = 2 { input.method == "PUT" } else = 1 { true }
allow { level == 3 }
---
level(method) = 3 { method == "GET" } else = 2 { method == "PUT" } else = 1
allow { level("PUT") == 2; level("POST") == 1; level(input.method) == 3 }
---
f(x, y) = z { z := x + y }
allow { f(1, 2) == 3 }
---
f([x, y]) = x { y > 1 }
allow { f([1, 2]) == 1; not f([1, 1]) }
---
is_admin { input.roles[_] == "admin" }
allow { is_admin }
---
default level = 0
level = 1 { input.method == "PUT" }
allow { level == 0 }
---
allow { [x, 2] = [1, y]; x == 1; y == 2 }
---
allow { {"name": n} = {"name": input.user.name}; n == "alice" }
---
allow { x := [r | r := input.roles[_]; r != "dev"]; x == ["admin"] }
---
allow { x := {r | r := input.roles[_]}; x == {"admin", "dev"} }
---
allow { x := {r: i | r := input.roles[i]}; x.admin == 1 }
---
allow { count({r | input.roles[_] = r}) == 2 }
---
allow { walk(input, [path, value]); value == "alice" }
---
allow { walk(input, [path, _]); path == ["user", "name"] }
---
allow { [_, value] := walk(input)[_] }
---
allow { input.user.age >= 18 }
---
allow { input.user.age > "17" }
---
allow { input.user.name > 17 }
---
allow { input.user.missing > 17 }
---
allow { not input.user.missing }
---
allow { input.user.banned == false }
---
allow { not input.user.banned }
---
allow { input.user.banned }
---
allow { input.user.nothing == null }
---
allow { input.user.nothing }
---
allow { x := input.user; x.name == "alice" }
---
allow { input["user"]["name"] == "alice" }
---
allow { input.roles[count(input.roles) - 1] == "admin" }
---
import input.user as u
allow { u.name == "alice" }
---
import data.other
allow { not other.x }
---
allow { not data.anything.at.all }
---
allow { data.anything }
---
allow { input.user.name == "bob" } { input.method == "GET" }
---
allow { p with input as {"x": 1} }
p { input.x == 1 }
---
allow { p with input.method as "PUT" }
p { input.method == "PUT"; input.user.name == "alice" }
---
allow { not p with input.method as "PUT" }
p { input.method == "GET" }
---
allow = true
---
allow = input.user.name
---
allow { x = y }
---
allow { not user }
---
allow { x := 1; x := 2 }
---
allow { a := b; b := a }
---
allow { nosuch(1) }
---
allow { p }
p { allow }
---
allow { 1 == "a" }
---
allow { startswith("abc", 1) }
---
allow { true }
allow = false { true }
---
x = 1 { true }
x = 2 { true }
allow { true }
---
default allow = true
---
allow { input.x[_ }
---
allow { "a" == `a` }
---
allow { "\u00e4" == "ä" }
---
allow { input.user.city == "Zürich"; count(input.user.city) == 6 }
---
allow { -1 < 0; 1.50 == 1.5; 1e3 == 1000 }
---
allow { 7 % 4 == 3; -7 % 4 == -3; 7 / 2 == 3.5; 0.1 + 0.2 == 0.3 }
---
allow { 1 + 2 * 3 == 7; (1 + 2) * 3 == 9 }
---
allow { {1, 2} & {2, 3} == {2}; {1} | {2} == {1, 2}; {1, 2} - {1} == {2} }
---
allow { input.user.tags["x"] }
---
allow { tags := {t | t := input.user.tags[_]}; tags["x"]; not tags["z"] }
---
allow { some x; input.roles[x]; x == 1 }
---
allow { input.matrix[i][i] == 4 }
---
allow { foo == input.matrix[0][foo - 1]; foo := 1 }
---
allow { i == input.indexes[i] }
---
allow { count([x | x := input.roles[_]; x == input.roles[_]]) == 2 }
---
allow { sprintf("%s:%d", [input.user.name, 5]) == "alice:5" }
---
allow { concat("/", ["a", "b"]) == "a/b"; split("a/b", "/")[1] == "b" }
---
allow { time.now_ns() > 0 }
---
allow { to_number(input.user.phone) == 18 }
---
allow { to_number(input.user.phone) == 18 }
allow { input.method == "GET" }
---
allow { object.get(input.user, "x", "none") == "none"; object.get(input, ["user", "name"], "") == "alice" }
---
allow { is_string(input.user.name); not is_number(input.user.name) }
---
allow { trim_prefix("Bearer abc", "Bearer ") == "abc" }
---
allow { count(input.user) > 3; any([false, true]); all([true]) }
---
allow { re_match("^al", input.user.name); regex.match("ce$", input.user.name) }
---
allow { glob.match("*.example.com", [], "api.example.com"); not glob.match("*.example.com", [], "a.b.example.com") }
---
allow { p[x]; x == 2 }
p = [1, 2, 3]
---
p[x] { x := input.roles[_] }
allow { p[_] == "admin" }
---
p.q = 1
allow { p.q == 1 }
---
allow { x := {"a": 1, "a": 2}; x.a == 2 }
---
allow {
  input.method == "GET"
  # a comment
  input.user.name ==
    "alice"
}
---
allow { input.method == "GET"; }
---
allow { print("x", input.method) }
---
allow { trace("x") }
---
allow { [x + 1 | x := input.matrix[_][_]][0] == 2 }
---
allow { {x + 1: x | x := input.matrix[_][_]}[3] == 2 }
---
allow { [{1} | {2}] == [{1}] }
---
allow { [1, {1} | {2}] == [1, {1, 2}] }
---
allow { not input.missing == 1 }
---
allow { not input.missing != 1 }
---
allow { not input.missing > 1 }
---
allow { not input.missing = 1 }
---
und { false }
allow { not und != 1 }
---
und { false }
allow { not und > 1 }
---
und { false }
allow { not und == input.n }
---
und { false }
allow { not input.n == und }
---
und { false }
allow { not input.n != und }
---
und { false }
allow { not is_null(und) }
---
ob[a] = 1 { a := "x" }
allow { not ob.y == 1 }
---
ob[a] = 1 { a := "x" }
allow { not ob.y }
---
ob[a] = 1 { a := "x" }
allow { not ob[input.s] == 1 }
---
ob[a] = 1 { a := "x" }
allow { not ob.y != input.arr }
---
ob[a] = 1 { a := "x" }
allow { not ob.y == input.arr }
---
ob[a] = 1 { a := "x" }
allow { not input.arr == ob.y }
---
f(x) = 1 { x == 2 }
allow { not f(1) }
---
f(x) = 1 { x == 2 }
allow { not f(1) == 1 }
---
f(x) = 1 { x == 2 }
allow { not f(1) = 1 }
---
f(x) = 1 { x == 2 }
allow { not f(f(1)) }
---
f(x) = 1 { x == 2 }
allow { not f(input.missing) }
---
f(x) = 1 { x == 2 }
allow { not f(input.missing) == 1 }
---
allow { not lower(input.missing) == "a" }
---
allow { not lower(input.missing) }
---
allow { not startswith(input.missing, "a") }
---
allow { not startswith(lower(input.missing), "a") }
---
allow { not count(input.missing) > 2 }
---
allow { not count(input.missing) + 1 > 2 }
---
allow { not input.missing + 1 == 2 }
---
allow { not input.arr[input.missing] }
---
allow { not input.arr[input.missing] == 1 }
---
allow { not input.o[lower(input.missing)] }
---
allow { not [input.missing] }
---
allow { not [input.missing] == [1] }
---
allow { not {"a": input.missing} == {"a": 1} }
---
allow { not {input.missing} == {1} }
---
allow { not [x | x := input.missing] == [] }
---
import future.keywords
allow { not input.missing in [1] }
---
import future.keywords
allow { not 1 in input.missing }
---
import future.keywords
allow { not "a" in input.missing }
---
import future.keywords
und { false }
allow { not "a" in und }
---
allow { not input.arr[_] == 7 }
---
allow { not input.arr[_] == 2 }
---
allow { not input.arr[_] != 2 }
---
allow { not lower(input.roles[_]) == "root" }
---
allow { not lower(input.roles[_]) == "dev" }
---
allow { not lower(input.roles[_]) == "admin" }
---
allow { not startswith(input.roles[_], "d") }
---
allow { not startswith(lower(input.roles[_]), "d") }
---
p[x] { x := input.roles[_] }
allow { not startswith(p[_], "d") }
---
p[x] { x := input.roles[_] }
allow { not p[_] == "dev" }
---
p[x] { x := input.roles[_] }
allow { not lower(p[_]) == "dev" }
---
p[x] { x := input.roles[_] }
allow { not [p[_]] == ["dev"] }
---
allow { not input.arr[_] + 1 == 3 }
---
allow { not input.objs[_].k + 1 == 3 }
---
allow { x := input.roles[_]; not lower(x) == "dev" }
---
allow { not input.missing with input.missing as 1 }
---
allow { not input.missing == 1 with input.missing as 1 }
---
allow { not lower(input.missing) == "a" with input.missing as "A" }
---
allow { not count([x | x := input.missing]) == 1 }
---
allow { not input[input.missing].x }
---
allow { not walk(input.missing) }
---
allow { not walk(input.o, [_, 1]) }
---
allow { not walk(input.o, [_, 77]) }
---
allow { not to_number("x") == 1 }
---
allow { not {x: 1 | x := input.missing}.y }
---
allow { not sum([1, input.missing]) == 1 }
---
allow { not {1, 2}[input.missing] }
---
allow { not lower("A", "b") }
---
allow { not lower(input.missing, "b") }
---
und { false }
allow { not und; not und == true }
---
import future.keywords
allow { every x in input.arr { not input.missing == x } }
---
import future.keywords
allow { every x in input.arr { lower(input.missing) == x } }
---
import future.keywords
allow { every x in input.missing { x } }
---
import future.keywords
allow { not every x in input.missing { x } }
---
import future.keywords
allow { not every x in input.arr { x == 1 } }
---
import future.keywords
allow { every x in lower(input.missing) { x } }
---
import future.keywords
allow { every x in input.n { x } }
---
import future.keywords
allow { every x in input.s { x == 77 } }
---
import future.keywords
allow { not every x in input.s { x == 77 } }
---
import future.keywords
allow { not some x in input.arr }
---
allow { not data }
---
allow { not data.foo }
---
allow { not data[input.method] }
---
allow { not data[_] }
---
allow { x := data; not x.foo }
---
import data.foo as z
allow { not z }
---
import data as z
allow { not z.foo }
---
allow if { true }
---
allow if true
---
allow { "dev" in input.roles }
---
allow { every x in input.arr { x > 0 } }
---
allow { some x in input.arr; x > 2 }
---
p contains 1
allow { p[1] }
---
import rego.v1
allow { true }
---
import rego.v1
allow = true
---
import rego.v1
p[1] { true }
allow if p[1]
---
import rego.v1
allow if { true }
---
import rego.v1
import future.keywords
allow if { true }
---
import future.keywords.foo
allow { true }
---
import future.keywords.in as x
allow { true }
---
import future
allow { true }
---
import rego
allow { true }
---
import rego.v1.foo
allow { true }
---
import rego.v1 as v
allow if { true }
---
import rego.v2
allow if { true }
---
import input.o as o
import input.arr as o
allow { o }
---
import input
allow { input.t }
---
import input.o
allow { o.a == 1 }
---
import input["o"]
allow { o.a == 1 }
---
import input["o-x"]
allow { true }
---
allow { true }
import input.o
---
allow { true }
import future.keywords.if
q if true
---
p[1] { true } else = 2 { true }
allow { p[1] }
---
p["a"] = 1 { false } else = 2 { true }
allow { true }
---
default x = input.o
allow { x }
---
default x = [y | y := 1]
allow { x }
---
default x = [y | y := input.arr[_]]
allow { x }
---
default x = y
allow { true }
---
default x = 1 + 1
allow { true }
---
default x = lower("A")
allow { true }
---
default x = {"a": input.o}
allow { true }
---
default x = 1
default x = 2
allow { true }
---
x = 1
x = 2
allow { true }
---
x = 1
x = 1
allow { x == 1 }
---
x = 1 { input.t }
x = 2 { input.t }
allow { true }
---
allow = 1
---
allow = true { true }
allow = false { true }
---
x { true }
x[1] { true }
allow { true }
---
x = 1
x(y) = 2
allow { true }
---
f(x) = 1
f(x, y) = 2
allow { true }
---
f(1) = 1
f(2) = 2
allow { f(1) == 1; not f(3) }
---
f(x) = x { x > 1 }
f(x) = 2 { x > 2 }
allow { f(3) == 3 }
---
allow { a }
a { b }
b { a }
---
allow { not allow }
---
f(x) = f(x)
allow { true }
---
allow { x > 1 }
---
allow { not x }
---
allow { not x == 1 }
---
allow { x := y; y := 1 }
---
allow { x = y; y = 1 }
---
allow { x := 1; x = 2 }
---
allow { some x; x = 1 }
---
allow { some x }
---
allow { some x; x := 1 }
---
allow { input := 1 }
---
allow { data := 1 }
---
allow { input = x; x.t }
---
allow { x = input.arr[x] }
---
allow { true; }
---
allow { ; true }
---
allow { true;; true }
---
allow {}
---
allow
---
allow { true } { false }
---
allow { false } { true }
---
allow = true { false } else { true }
---
allow { false } else = x { x := true }
---
allow { false } else = false { false } else = true
---
allow { false } else { false } { true }
---
allow = input.t
---
allow := input.t
---
allow := true { input.t }
---
allow == true { true }
---
allow { 1 }
---
allow { null }
---
allow { "" }
---
allow { 0 }
---
allow { [] }
---
allow { {} }
---
allow { set() }
---
allow { -1 }
---
allow { - 1 }
---
allow { x := 5; x -1 == 4 }
---
allow { x := 5; y := -x }
---
allow { 1 == 1.0 }
---
allow { 1e3 == 1000 }
---
allow { 1.5e1 == 15 }
---
allow { -0 == 0 }
---
allow { 0.1 + 0.2 == 0.3 }
---
allow { 1. == 1 }
---
allow { 1.0.x }
---
allow { 1e400 > 1 }
---
allow { 9007199254740993 == input.big }
---
allow { 9007199254740992 == input.big }
---
allow { 18446744073709551617 == 18446744073709551616 }
---
allow { 1.00000000000000000001 == 1 }
---
allow { {1.00000000000000000001, 1} == {1} }
---
allow { "a" == 'a' }
---
allow { "\x41" == "A" }
---
allow { "\u0041" == "A" }
---
allow { "\/" == "/" }
---
allow { "\ud83d\ude00" == "😀" }
---
allow { `a\n` == "a\\n" }
---
allow { `a
b` == "a\nb" }
---
allow { "a	b" == "a\tb" }
---
allow { input.s == "h\u00e9llo" }
---
allow { x = input.t # comment
}
---
allow { # c
 true }
---
allow
{ true }
---
allow =
 true
---
allow { true
}
else = 3 { true }
---
allow { x := [
1,
2
]
x[0] == 1 }
---
allow { input
.t }
---
allow { input.
t }
---
allow { input [0] }
---
allow { input. t }
---
allow { count (input.arr) == 3 }
---
allow { count(input.arr)==3 }
---
allow { input.arr[0]==1;input.arr [1] }
---
allow { input.arr
[0] }
---
allow { input["arr"][0] == 1 }
---
allow { input.arr["0"] == 1 }
---
allow { input.arr[0.0] == 1 }
---
allow { input.arr[-1] == 3 }
---
allow { input.arr[1.0] == 2 }
---
allow { input.arr[1e0] == 2 }
---
allow { not input.arr[10] }
---
allow { input.s[0] }
---
allow { not input.s[0] }
---
allow { not input.missing.foo.bar }
---
allow { input.nul == null }
---
allow { not input.nul }
---
allow { input.fa == false }
---
allow { not input.fa }
---
allow { input.fa }
---
allow { input.zero }
---
allow { input.e }
---
allow { {"a": x} = {"a": 1}; x == 1 }
---
allow { {x} = {1} }
---
allow { {x: 1} = {"a": 1} }
---
allow { [x, x] = [1, 2] }
---
allow { [x, x] = [1, 1] }
---
allow { {"a": [x, {"b": y}]} = {"a": [1, {"b": 2}]}; x + y == 3 }
---
allow { [x, input.arr[x]] = [1, 2] }
---
allow { x = [y, z]; y = 1; z = 2; x == [1, 2] }
---
allow { x = x }
---
allow { x == x }
---
allow { input.arr[i] == 2; i = 1 }
---
allow { input.arr[input.idx[_]] == 3 }
---
allow { [1,2,3][x] == 2; x == 1 }
---
allow { {"a":1}.a == 1 }
---
allow { {1,2}[x]; x == 2 }
---
allow { "abc"[0] }
---
allow { true.x }
---
allow { [1,2][0] == 1 }
---
allow { {x | x := input.arr[_]}[2] }
---
allow { count({x | input.arr[x]}) == 3 }
---
allow { [1 | true] == [1] }
---
allow { [x | x = input.arr[_]; x > 1] == [2, 3] }
---
allow { {x: y | y = input.arr[x]} == {0: 1, 1: 2, 2: 3} }
---
allow { x := {y: 1 | y := input.arr2[_]}; count(x) == 2 }
---
allow { x := {y: z | y := input.arr2[z]}; count(x) == 2 }
---
allow { x := {"a": 1, "a": 1} ; x.a == 1}
---
p = 1; q = 2
allow { p == 1 }
---
p { true };
allow { p }
---
import input.o; allow { o }
---
allow { true }; q = 2
---
import future.keywords
allow { not x := 1 }
---
import rego.v1
allow if any([true])
---
import rego.v1
allow if re_match("a", "a")
---
import rego.v1
allow if cast_array([1])
---
import rego.v1
allow if { input := {"t": true}; input.t }
---
import rego.v1
import input.o
import input.o
allow if o
---
import input.o
import input.o
allow { o }
---
import rego.v1
f(x) := 1 { x }
allow if f(1)
---
import rego.v1
allow := true if { true } else := false { true }
---
import rego.v1
allow if { false } else if { true }
---
import rego.v1
allow if { false } else := true
---
import rego.v1
p[x] if some x in [1]
allow if p[1]
---
import rego.v1
p[1]
allow if true
---
import rego.v1
p[x] := 1 if some x in [1]
allow if p[1] == 1
---
import rego.v1
default allow := false
allow if true
---
import rego.v1
x if { true }
allow := x
---
import future.keywords.if
allow if { "dev" in input.roles }
---
import future.keywords.in
allow if { "dev" in input.roles }
---
import future.keywords.every
allow { every x in input.arr { x > 0 } }
---
import future.keywords.every
allow { 1 in input.arr }
---
import future.keywords.contains
p contains 1
allow { p[1] }
---
import future.keywords.contains
p contains 1 if true
allow { p[1] }
---
contains = 1
allow { contains == 1 }
---
import future.keywords
if = 1
allow { if == 1 }
---
import future.keywords
contains = 1
allow { contains == 1 }
---
import future.keywords
in = 1
allow { in == 1 }
---
import future.keywords
allow { contains("abc", "b") }
---
import future.keywords.contains
allow { contains("abc", "b"); input.o.contains == 1 }
---
allow { input.if == 1 }
---
allow { not input.in }
---
allow { not input.default; not input.not; not input.package }
---
import future.keywords
allow { not input.if; not input.in; not input.every }
---
import future.keywords.if
p = 1 if true
allow { p == 1 }
---
import future.keywords.if
p[x] = 1 if { x := 2 }
allow if p[2] == 1
---
import future.keywords.if
p[x] if { x := 2 }
allow if p[2]
---
import future.keywords.if
p["a"] if true
allow if p.a
---
import future.keywords.if
allow if input.t; input.fa
---
import future.keywords.if
allow if {
 input.t
 not input.fa
}
---
import future.keywords.if
allow if {1, 2}
---
import future.keywords.if
allow if {input.t} == {true}
---
import future.keywords.if
allow if {input.t}
---
import future.keywords.if
allow if {input.fa}
---
import future.keywords.if
allow if {false} | {true}
---
import future.keywords
allow if "dev" in input.roles
---
import future.keywords
allow { [1 in input.arr] == [true] }
---
import future.keywords
allow { [0, 1 in input.arr] == [0, true] }
---
import future.keywords
allow { 1 in input.arr == true }
---
import future.keywords
allow { 1 == 1 in [true] }
---
import future.keywords
allow { 1 + 1 in [2] }
---
import future.keywords
allow { x := 1 in [1]; x }
---
import future.keywords
allow { x = 1 in [1]; x }
---
import future.keywords
allow { not 5 in input.arr }
---
import future.keywords
allow { some x in input.arr; x == 5 }
---
import future.keywords
allow { some "dev" in input.roles }
---
import future.keywords
allow { some {"k": 1, "v": v} in input.objs; v == "c" }
---
import future.keywords
allow { some [x, 2] in input.matrix; x == 1 }
---
import future.keywords
allow { some x, y, z in input.arr }
---
import future.keywords
x = 7
allow { some x in input.arr; x == 2 }
---
import future.keywords
allow { every k, v in input.arr { k < v } }
---
import future.keywords
allow { every x in input.arr { some y in input.arr; y == x } }
---
import future.keywords
allow { every x in input.ea { false } }
---
import future.keywords
allow { every x in input.o { x } }
---
import future.keywords
allow { every k, v in input.o { is_string(k) } }
---
import future.keywords
allow { x := 2; every x in input.arr { x > 0 } }
---
import future.keywords
allow { every x in input.arr { y := x; y > 0 }; y := 5 }
---
import future.keywords
allow { every x in input.arr { y = x; y > 0 }; y = 3 }
---
import future.keywords
allow { every x in [y | y := input.arr[_]] { x > 0 } }
---
allow { object.subset([], []) }
---
allow { object.subset([1], []) }
---
allow { object.subset({"a": []}, {"a": []}) }
---
allow { object.subset({"a": [1]}, {"a": []}) }
---
allow { object.subset(set(), set()) }
---
allow { object.subset([], set()) }
---
allow { object.subset({}, {}) }
---
allow { regex.match("a\\\\C", "a\\C") }
---
allow { ceil(-1.5) == -1; floor(-1.5) == -2 }
---
allow { min([null]) == null }
---
allow { glob.match("*", ["-", "^", "]"], "a]b") }
---
allow { glob.match("*", ["^"], "a^b") }
---
allow { glob.match("*:*", [":"], "a:b:c") }
---
allow { glob.match("a*b*c", [], "axbxbxc") }
---
allow { glob.match("*.b", [], "a.b") }
---
allow { glob.match("*.b", null, "x.a.b") }
---
allow { glob.match("", [], "") }
---
allow { glob.match("*", [], "") }
---
allow { glob.match("*", ["ab"], "xaby") }
---
allow { x := input.roles[_]; y := x; not y == "dev" }
---
allow { input.user.age >= 18.0 }
---
allow { input.user.age == 2e1 }
---
allow { 1.0 * 2 == 2 }
---
und { false }
allow { not und == 1 }
---
und { false }
allow { not und = 1 }
---
und { false }
allow { not 1 == und }
---
und { false }
allow { not count(und) == 0 }
---
und { false }
allow { not und.x }
---
und { false }
allow { not und[input.missing] }
---
und { false }
allow { und != 1 }
---
p[x] { x := 1 }
allow { p == 1 }
---
p[x] { x := 1 }
allow { not p == [1] }
---
n = 5 { input.method == "GET" }
allow { not n == "5" }
---
n = 5 { input.method == "GET" } else = "x"
allow { n == 5 }
---
n = 5 { input.method == "GET" }
n = "x" { input.method == "PUT" }
allow { n == 5 }
---
default n = null
n = "x" { input.method == "PUT" }
allow { n == null }
---
default n = ""
n = "x" { input.method == "GET" }
allow { startswith(n, "x") }
---
n { input.method == "GET" }
allow { startswith(n, "x") }
---
n { input.method == "GET" }
allow { n; n == true }
---
n = x { x := input.method }
allow { n == 1 }
---
n = x { x := input.method }
allow { not n.y }
---
import future.keywords
n contains x if { some x in input.roles }
allow if { "dev" in n; n["dev"]; count(n) == 2 }
---
import future.keywords
n { true }
allow if { not "dev" in n }
---
allow { {x | input.roles[_]; 1 < 3} != set(); x := 2 }
---
allow { count([x | x := input.roles[_]]) == 2; x := 2; x == 2 }
---
import future.keywords
allow { every x in input.roles { x != "" }; x := 2; x == 2 }
---
import future.keywords
allow { every y in input.roles { y != x }; x := 2; x == 2 }
---
allow { x := 2; count([y | y := x]) == 1 }
---
import future.keywords
allow { count([1 | some x in input.roles]) == 2; some x in input.roles; x == "dev" }
---
allow { [k, "x"] := input.roles }
allow { true }
---
allow { {"a": k} := [1] }
allow { true }
---
allow { [k] := [1, 2] }
allow { true }
---
allow { [k, j] := [1, 2]; j > k }
---
allow { {"a": x, "b": 2} = {"a": 1} }
allow { true }
---
allow { {"a": x, "b": 2} = {"a": 1, "b": 2}; x == 1 }
---
allow { {"name": n} := {"name": input.user.name}; n == "alice" }
---
allow { [k, _] := input.roles; k == "dev" }
