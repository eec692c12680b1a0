-- JSON-RPC messages in the body of a request, read as strictly as `messages.py` reads them.
--   local list, problem = messages.read(body)
-- gives the messages, each with `kind` ("request", "notification" or "response"), `method`, `name` and `id` (as it is
-- written in the body, to be put into an answer), where it has them; or nil and what is wrong (`problems.py`).

local messages = (function()
  local byte, char, find, sub, lower, concat = string.byte, string.char, string.find, string.sub, string.lower, table.concat

  local MAX_BYTES, MAX_DEPTH, MAX_MESSAGES, MAX_DIGITS = 1048576, 64, 64, 4300

  local function set(...)
    local members = {}
    for _, member in ipairs({ ... }) do members[member] = true end
    return members
  end

  local MEMBERS = set("jsonrpc", "id", "method", "params", "result", "error")
  local PARAMS = set("name", "uri", "arguments", "_meta")
  local NAMED = {
    ["tools/call"] = "name", ["prompts/get"] = "name", ["resources/read"] = "uri",
    ["resources/subscribe"] = "uri", ["resources/unsubscribe"] = "uri",
  }
  local METHODS = set(--[[METHODS]])
  local SPELLINGS = {}
  for method in pairs(METHODS) do SPELLINGS[lower(method)] = true end

  local ESCAPES = {
    [34] = '"', [92] = "\\", [47] = "/", [98] = "\b", [102] = "\f", [110] = "\n", [114] = "\r", [116] = "\t",
  }

  -- What is wrong ends the reading; anything else that ends it is wrong too.
  local Problem = {}

  local function refuse(problem) error(setmetatable({ problem = problem }, Problem), 0) end

  -- Text

  local function is_utf8(text)
    local at = 1
    while true do
      at = find(text, "[\128-\255]", at)
      if not at then return true end
      local first, second, third, fourth = byte(text, at, at + 3)
      local low, high, length = 128, 191, 2
      if first < 194 or first > 244 then return false end
      if first >= 240 then
        length = 4
        if first == 240 then low = 144 elseif first == 244 then high = 143 end
      elseif first >= 224 then
        length = 3
        if first == 224 then low = 160 elseif first == 237 then high = 159 end
      end
      if not second or second < low or second > high then return false end
      if length >= 3 and (not third or third < 128 or third > 191) then return false end
      if length == 4 and (not fourth or fourth < 128 or fourth > 191) then return false end
      at = at + length
    end
  end

  local function encoded(code)
    if code < 128 then return char(code) end
    if code < 2048 then return char(192 + math.floor(code / 64), 128 + code % 64) end
    if code < 65536 then
      return char(224 + math.floor(code / 4096), 128 + math.floor(code / 64) % 64, 128 + code % 64)
    end
    return char(240 + math.floor(code / 262144), 128 + math.floor(code / 4096) % 64,
      128 + math.floor(code / 64) % 64, 128 + code % 64)
  end

  -- JSON. Each function gets a position, and returns the position behind what it read.

  local function behind_space(text, at)
    local code = byte(text, at)
    if code ~= 32 and code ~= 10 and code ~= 13 and code ~= 9 then return at end
    local _, last = find(text, "^[ \t\n\r]+", at)
    return last + 1
  end

  local function hexadecimal(text, at)
    if not find(text, "^%x%x%x%x", at) then refuse("syntax") end
    return tonumber(sub(text, at, at + 3), 16)
  end

  -- An escape whose backslash is here, and what it stands for.
  local function escape(text, at)
    local plain = ESCAPES[byte(text, at + 1)]
    if plain then return at + 2, plain end
    if byte(text, at + 1) ~= 117 then refuse("syntax") end
    local code = hexadecimal(text, at + 2)
    if code < 0xD800 or code > 0xDFFF then return at + 6, encoded(code) end
    if code > 0xDBFF or sub(text, at + 6, at + 7) ~= "\\u" then refuse("lone-surrogate") end
    local low = hexadecimal(text, at + 8)
    if low < 0xDC00 or low > 0xDFFF then refuse("lone-surrogate") end
    return at + 12, encoded(0x10000 + (code - 0xD800) * 1024 + low - 0xDC00)
  end

  -- The string whose opening quote is here.
  local function read_string(text, at)
    local from, parts = at + 1, nil
    while true do
      local stop = find(text, '["\\%z\1-\31]', from)
      if not stop then refuse("syntax") end
      local code = byte(text, stop)
      if code == 34 then
        local rest = sub(text, from, stop - 1)
        if not parts then return stop + 1, rest end
        parts[#parts + 1] = rest
        return stop + 1, concat(parts)
      end
      if code ~= 92 then refuse("syntax") end
      parts = parts or {}
      parts[#parts + 1] = sub(text, from, stop - 1)
      from, parts[#parts + 1] = escape(text, stop)
    end
  end

  local function read_number(text, at)
    local _, last = find(text, "^-?[1-9]%d*", at)
    if not last then _, last = find(text, "^-?0", at) end
    if not last then refuse("syntax") end
    local whole, kind = last, "integer"
    local _, fraction = find(text, "^%.%d+", last + 1)
    if fraction then last, kind = fraction, "number" end
    local _, exponent = find(text, "^[eE][-+]?%d+", last + 1)
    if exponent then last, kind = exponent, "number" end
    if kind == "integer" and whole - at + (byte(text, at) == 45 and 0 or 1) > MAX_DIGITS then refuse("syntax") end
    return last + 1, kind
  end

  local read_value

  -- The object that begins here. Its members are kept, as tables, for so many levels.
  local function read_object(text, at, depth, levels)
    local seen, members = {}, levels > 0 and {} or nil
    at = behind_space(text, at + 1)
    if byte(text, at) == 125 then return at + 1, "object", members end
    while true do
      if byte(text, at) ~= 34 then refuse("syntax") end
      local key
      at, key = read_string(text, at)
      if seen[key] then refuse("duplicate-key") end
      seen[key] = true
      at = behind_space(text, at)
      if byte(text, at) ~= 58 then refuse("syntax") end
      local start = behind_space(text, at + 1)
      local kind, value
      at, kind, value = read_value(text, start, depth, levels - 1)
      if members then members[key] = { kind = kind, value = value, start = start, stop = at - 1 } end
      at = behind_space(text, at)
      local code = byte(text, at)
      if code == 125 then return at + 1, "object", members end
      if code ~= 44 then refuse("syntax") end
      at = behind_space(text, at + 1)
    end
  end

  local function read_array(text, at, depth, levels)
    local elements = levels > 0 and {} or nil
    at = behind_space(text, at + 1)
    if byte(text, at) == 93 then return at + 1, "array", elements end
    while true do
      local kind, value
      at, kind, value = read_value(text, at, depth, levels)
      if elements then elements[#elements + 1] = { kind = kind, value = value } end
      at = behind_space(text, at)
      local code = byte(text, at)
      if code == 93 then return at + 1, "array", elements end
      if code ~= 44 then refuse("syntax") end
      at = behind_space(text, at + 1)
    end
  end

  function read_value(text, at, depth, levels)
    local code = byte(text, at)
    if code == 34 then
      local value
      at, value = read_string(text, at)
      return at, "string", value
    elseif code == 123 or code == 91 then
      if depth == MAX_DEPTH then refuse("too-deep") end
      return (code == 123 and read_object or read_array)(text, at, depth + 1, levels)
    elseif code == 116 and sub(text, at, at + 3) == "true" then
      return at + 4, "boolean"
    elseif code == 102 and sub(text, at, at + 4) == "false" then
      return at + 5, "boolean"
    elseif code == 110 and sub(text, at, at + 3) == "null" then
      return at + 4, "null"
    end
    return read_number(text, at)
  end

  -- Messages

  local function refuse_lookalikes(members, known)
    for key in pairs(members) do
      if not known[key] and (known[lower(key)] or not find(key, "^[\33-\126]+$")) then refuse("lookalike-key") end
    end
  end

  local function is_clean(name)
    return #name > 0 and not find(name, "[%z\1-\31\127]") and not find(name, "\194[\128-\159]")
  end

  local function read_method(member)
    local method = member.kind == "string" and member.value or ""
    if not METHODS[method] and (SPELLINGS[lower(method)] or not find(method, "^[\33-\126]+$")) then refuse("method") end
    return method
  end

  local function read_name(method, params)
    local members = params and params.value
    if params and params.kind == "object" then
      refuse_lookalikes(members, PARAMS)
    elseif params and params.kind ~= "null" then
      refuse("params")
    end
    local wanted = NAMED[method]
    if not wanted then return nil end
    local name = members and members[wanted]
    if not name or name.kind ~= "string" or not is_clean(name.value) then refuse("name") end
    return name.value
  end

  local function read_id(text, member)
    if not member or (member.kind ~= "string" and member.kind ~= "integer") then refuse("id") end
    return sub(text, member.start, member.stop)
  end

  local function read_response(text, members)
    local result, failure, id = members.result, members.error, members.id
    if result and failure then refuse("ambiguous-kind") end
    if not result and not failure then refuse("not-a-message") end
    if failure and id and id.kind == "null" then return { kind = "response" } end
    return { kind = "response", id = read_id(text, id) }
  end

  local function read_message(text, kind, members)
    if kind ~= "object" then refuse("not-a-message") end
    refuse_lookalikes(members, MEMBERS)
    local version = members.jsonrpc
    if not version or version.kind ~= "string" or version.value ~= "2.0" then refuse("jsonrpc-version") end
    if not members.method then return read_response(text, members) end
    if members.result or members.error then refuse("ambiguous-kind") end
    local method = read_method(members.method)
    local name = read_name(method, members.params)
    if not members.id then return { kind = "notification", method = method, name = name } end
    return { kind = "request", method = method, name = name, id = read_id(text, members.id) }
  end

  local function read_all(text)
    if #text > MAX_BYTES then refuse("too-large") end
    if not is_utf8(text) or sub(text, 1, 3) == "\239\187\191" then refuse("encoding") end
    local at, kind, value = read_value(text, behind_space(text, 1), 0, 2)
    if behind_space(text, at) <= #text then refuse("syntax") end
    if kind ~= "array" then return { read_message(text, kind, value) } end
    if #value == 0 then refuse("empty-batch") end
    if #value > MAX_MESSAGES then refuse("too-many-messages") end
    local list = {}
    for index, element in ipairs(value) do list[index] = read_message(text, element.kind, element.value) end
    return list
  end

  local function read(text)
    local fine, outcome = pcall(read_all, text)
    if fine then return outcome end
    return nil, getmetatable(outcome) == Problem and outcome.problem or "syntax"
  end

  return { read = read }
end)()
