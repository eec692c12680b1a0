-- Notes all values of the headers and query parameters that policies look at, so that RBAC can compare them.
-- FIELDS, defined before this script, lists them. The note of a field is "=" and each value between START and STOP, or
-- UNCLEAR. Without a note, because this script failed, RBAC refuses the request. A further note has all fields, each
-- with its key before it and STOP behind it, for the log of requests that stay open.

local START, STOP, UNCLEAR = "\2", "\3", "?"
local ALL = "eastgate.values"
local REPLACEMENT = "\239\191\189"

-- Headers

local function trimmed(text)
  local first = text:find("[^ \t]")
  if not first then return "" end
  local last = #text
  while text:find("^[ \t]", last) do last = last - 1 end
  return text:sub(first, last)
end

-- Returns whether a value may be several values that Envoy has joined.
local function may_be_several(text, joint, http2)
  if not joint then return false end
  if http2 then return text:find(joint, 1, true) ~= nil end
  return joint == "," and text:find(",[^ \t]") ~= nil
end

local function header_values(headers, field, http2)
  local values = {}
  for index = 0, headers:getNumValues(field.name) - 1 do
    local value = trimmed(headers:getAtIndex(field.name, index))
    if may_be_several(value, field.joint, http2) then return nil end
    values[#values + 1] = value
  end
  return values
end

-- Queries

-- Returns the text in UTF-8: each longest sequence of invalid bytes, or of an incomplete character, is replaced.
local function repaired(text)
  local parts, from = {}, 1
  while true do
    local at = text:find("[\128-\255]", from)
    if not at then
      parts[#parts + 1] = text:sub(from)
      return table.concat(parts)
    end
    parts[#parts + 1] = text:sub(from, at - 1)
    local first, more, low, high = text:byte(at), 0, 128, 191
    if first >= 194 and first <= 223 then
      more = 1
    elseif first >= 224 and first <= 239 then
      more = 2
      if first == 224 then low = 160 elseif first == 237 then high = 159 end
    elseif first >= 240 and first <= 244 then
      more = 3
      if first == 240 then low = 144 elseif first == 244 then high = 143 end
    end
    local length = 1
    while length <= more do
      local byte = text:byte(at + length)
      if not byte or byte < low or byte > high then break end
      low, high, length = 128, 191, length + 1
    end
    local whole = more > 0 and length == more + 1
    parts[#parts + 1] = whole and text:sub(at, at + length - 1) or REPLACEMENT
    from = at + length
  end
end

local function decoded(text)
  text = text:gsub("%+", " "):gsub("%%(%x%x)", function(code) return string.char(tonumber(code, 16)) end)
  return repaired(text)
end

-- Returns the parameters of a query, as lists of values, without names that no policy looks at.
local function parameters(target, wanted)
  local found = {}
  local mark = target:find("?", 1, true)
  if not mark then return found end
  for part in target:sub(mark + 1):gmatch("[^&]+") do
    local equals = part:find("=", 1, true)
    local name = decoded(equals and part:sub(1, equals - 1) or part)
    if wanted[name] then
      found[name] = found[name] or {}
      table.insert(found[name], decoded(equals and part:sub(equals + 1) or ""))
    end
  end
  return found
end

-- Notes

local function noted(values)
  if not values then return UNCLEAR end
  for _, value in ipairs(values) do
    if value:find("[%z\2\3]") then return UNCLEAR end  -- state cannot hold them
  end
  return "=" .. (#values > 0 and START .. table.concat(values, STOP .. START) .. STOP or "")
end

-- Adds missing notes. There are two such filters, so that one is there while policies change, and the other may not
-- have noted the values one by one.
local function note(state, field, read)
  local together, apart = not state:get(field.key), field.each and not state:get(field.each)
  if not together and not apart then return end
  local values = read(field)
  local text = noted(values)
  if apart then
    local clear = text ~= UNCLEAR and #values <= field.most
    for index = 1, clear and #values or 0 do
      state:set(field.each .. "/" .. (index - 1), "envoy.string", values[index])
    end
    state:set(field.each, "envoy.string", clear and "=" or UNCLEAR)
  end
  if together then state:set(field.key, "envoy.string", text) end
end

local NAMES = {}
for _, field in ipairs(FIELDS) do
  if not field.header then NAMES[field.name] = true end
end

function envoy_on_request(handle)
  local headers, info = handle:headers(), handle:streamInfo()
  local state, http2 = info:filterState(), info:protocol() == "HTTP/2"
  local query
  local function read(field)
    if field.header then return header_values(headers, field, http2) end
    query = query or parameters(headers:get(":path") or "", NAMES)
    return query[field.name] or {}
  end
  local all = {}
  for _, field in ipairs(FIELDS) do
    note(state, field, read)
    all[#all + 1] = field.key .. state:get(field.key) .. STOP
  end
  if not state:get(ALL) then state:set(ALL, "envoy.string", table.concat(all)) end
end
