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
