-- HTTP requests to an MCP server, read as `requests.py` reads them. The module `messages` stands before this.
--   local list, problem = requests.read(headers, body)
-- gives the messages of a request (none for GET and DELETE), or nil and what is wrong. `body` is its text, or nil.

local requests = (function()
  local START, END = "=?base64?", "?="
  local OVERRIDES = { --[[OVERRIDES]] }
  local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

  local function in_base64(text)
    local parts = {}
    for at = 1, #text, 3 do
      local first, second, third = text:byte(at, at + 2)
      local bits = first * 65536 + (second or 0) * 256 + (third or 0)
      for index = 1, 4 do
        local digit = math.floor(bits / 64 ^ (4 - index)) % 64 + 1
        local missing = (index == 3 and not second) or (index == 4 and not third)
        parts[#parts + 1] = missing and "=" or ALPHABET:sub(digit, digit)
      end
    end
    return table.concat(parts)
  end

  -- Whether a header is missing, or is there once and carries this text: itself, or in Base64.
  local function repeats(headers, name, text)
    local count = headers:getNumValues(name)
    if count == 0 then return true end
    if count > 1 or not text then return false end
    local value = headers:getAtIndex(name, 0)
    local encoded = #value >= #START + #END and value:sub(1, #START) == START and value:sub(-#END) == END
    return value == (encoded and START .. in_base64(text) .. END or text)
  end

  local function is_json(headers)
    if headers:getNumValues("content-type") ~= 1 then return false end
    local kind, parameter = headers:getAtIndex("content-type", 0):lower():match("^[ \t]*([^%s;,]+)[ \t]*(.*)$")
    if kind ~= "application/json" then return false end
    return parameter == "" or parameter:find('^;[ \t]*charset=utf%-8[ \t]*$') ~= nil
      or parameter:find('^;[ \t]*charset="utf%-8"[ \t]*$') ~= nil
  end

  local function read(headers, body)
    local method, list, problem = headers:get(":method"), {}, nil
    if method ~= "POST" and method ~= "GET" and method ~= "DELETE" then return nil, "http-method" end
    for _, name in ipairs(OVERRIDES) do
      if headers:getNumValues(name) > 0 then return nil, "http-method" end
    end
    if headers:getNumValues("content-encoding") > 0 then return nil, "content-encoding" end
    if method == "POST" then
      if not is_json(headers) then return nil, "content-type" end
      list, problem = messages.read(body or "")
      if not list then return nil, problem end
    elseif body and #body > 0 then
      return nil, "unexpected-body"
    end
    local only = #list == 1 and list[1] or {}
    if not repeats(headers, "mcp-method", only.method) or not repeats(headers, "mcp-name", only.name) then
      return nil, "headers"
    end
    return list
  end

  return { read = read }
end)()
