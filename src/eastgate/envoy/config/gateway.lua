-- Sends requests of a gateway to their destinations, and notes the values that policies look at.
-- Defined before this script: GATEWAY, its name and port; TLS, whether clients use it; SESSION_KEY; RULES, the
-- destinations of each rule of the routing, with their weights; DESTINATIONS, the description of each; and the modules
-- `requests` and `sessions`. Notes about a request are `eastgate.*` in filter state. Headers of that name carry them to
-- the authorizer, and no client can send one. `eastgate.waiting` is the possible destination of a request whose body is
-- still awaited: it is logged, and decides nothing.

local UNCLEAR = "unclear"
local RESPONSE = "notifications/response"  -- a response to the server is decided like a notification

local bound = sessions.new(SESSION_KEY)
math.randomseed(os.time() + (tonumber(tostring({}):match("0x(%x+)") or "0", 16) % 2147483647))

-- The caller: by its certificate, or else by its token.
local function peer_of(state)
  local peer = state:get("eastgate.peer")
  if peer and peer ~= "-" and peer ~= "none" then return peer end
  return state:get("eastgate.token") or "none"
end

-- Returns the server name in the handshake; empty for none. A text that cannot be a host counts as none.
local function sni_of(state)
  local name = state:get("eastgate.sni") or "-"
  return name ~= "-" and name:match("^[%w._-]+$") or ""
end

-- Returns the destination of a request, for the authorizer.
local function target_of(destination) return GATEWAY .. " " .. destination end

-- Returns the certificate of the client; Envoy writes "-" if there is none.
local function certificate_of(state)
  local certificate = state:get("eastgate.certificate")
  return (certificate and certificate ~= "-") and certificate or ""
end

-- A session belongs to one caller, one server and one gateway.
local function scope_of(backend) return GATEWAY:gsub(":%d+$", "") .. " " .. backend end

-- Routing

-- Returns the destination of the session of a request, or nil.
local function continued(destinations, headers, peer)
  if #destinations < 2 or headers:getNumValues("mcp-session-id") ~= 1 then return nil end
  local token = headers:get("mcp-session-id")
  for _, each in ipairs(destinations) do
    local backend = (DESTINATIONS[each.id] or {}).backend
    if backend and bound.unwrap(peer, scope_of(backend), token) then return each.id end
  end
end

local function draw(destinations)
  local total = 0
  for _, each in ipairs(destinations) do total = total + each.weight end
  local drawn = math.random() * total
  for _, each in ipairs(destinations) do
    drawn = drawn - each.weight
    if drawn < 0 then return each.id end
  end
  return destinations[#destinations].id
end

local function routed(handle)
  local info = handle:streamInfo()
  local decided = info:dynamicMetadata():get("envoy.filters.http.rbac")
  local rule = decided and decided["route_shadow_effective_policy_id"]
  rule = rule and rule:match("^200:(.*)$")
  if not rule then return UNCLEAR end
  local destinations = RULES[rule]
  if not destinations then return rule end
  local id = continued(destinations, handle:headers(), peer_of(info:filterState())) or draw(destinations)
  -- Over HTTP/2 Envoy would forward an upgrade as a CONNECT, and not as the request that is decided here.
  if (DESTINATIONS[id] or {}).http2 and handle:headers():get("upgrade") then return UNCLEAR end
  return id
end

-- Messages

-- Returns the state of the body of a request: "read" and its message, "batch" for several, "none", or "unread".
-- Waiting for the body invalidates all objects that were taken from the handle before.
local function read_message(handle)
  if handle:headers():get("upgrade") then return "unread" end
  local body = handle:body()
  local text = body and body:getBytes(0, body:length()) or nil
  local list = requests.read(handle:headers(), text)
  if not list then return "unread" end
  if #list > 1 then return "batch" end
  return list[1] and "read" or "none", list[1]
end

local function note_message(handle, message)
  local info = handle:streamInfo()
  info:filterState():set("eastgate.mcp.method", "envoy.string", message.method or RESPONSE)
  if message.name then info:filterState():set("eastgate.mcp.name", "envoy.string", message.name) end
  if message.kind == "request" then info:dynamicMetadata():set("eastgate.mcp", "id", message.id) end
end

-- Returns the reason why the session of a request is refused, or nil.
local function take_session(headers, peer, backend)
  local session = bound.take(headers, peer, scope_of(backend))
  if session == "bad" then return "bad-session" end
  if session == "none" and headers:get(":method") == "GET" then return "no-session" end
end

-- Requests

function envoy_on_request(handle)
  local id = routed(handle)
  local destination = DESTINATIONS[id] or {}
  local state_of_message, message = "unread", nil  -- also for rules that are newer than DESTINATIONS
  if destination.messages then
    handle:streamInfo():filterState():set("eastgate.waiting", "envoy.string", id)
    state_of_message, message = read_message(handle)
    if message then note_message(handle, message) end
  end
  local headers, state = handle:headers(), handle:streamInfo():filterState()
  local peer = peer_of(state)
  if destination.backend then
    local refused = take_session(headers, peer, destination.backend)
    if refused == "bad-session" or state_of_message ~= "unread" then state_of_message = refused or state_of_message end
    headers:remove("last-event-id")  -- it would replay answers to an earlier request
  end
  if destination.tools then headers:remove("accept-encoding") end
  state:set("eastgate.message", "envoy.string", state_of_message)
  state:set("eastgate.destination", "envoy.string", id)
  state:set("eastgate.authority", "envoy.string", headers:get(":authority") or "")
  headers:replace("x-eastgate-destination", id)
  headers:replace("x-eastgate-target", target_of(id))
  headers:replace("x-eastgate-source", peer)
  headers:replace("x-eastgate-address", state:get("eastgate.address") or "")
  headers:replace(":scheme", TLS and "https" or "http")
  headers:replace("x-forwarded-proto", TLS and "https" or "http")
  if TLS then
    headers:replace("x-eastgate-sni", sni_of(state))
    if destination.schemes then headers:replace("x-eastgate-certificate", certificate_of(state)) end
  end
  handle:clearRouteCache()
end

-- Answers

local function fail(handle, why)
  local length = handle:body(true):setBytes(
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"' .. why .. '"}}')
  handle:headers():remove("content-encoding")
  handle:headers():replace("content-type", "application/json")
  handle:headers():replace(":status", "502")
  handle:headers():replace("content-length", tostring(length))
end

local function filter_tools(handle)
  local body = handle:body(true)
  if body:length() == 0 then return end
  local state = handle:streamInfo():filterState()
  local answered, filtered = handle:httpCall("tools", {
    [":method"] = "POST", [":path"] = "/tools", [":authority"] = "authorizer",
    ["content-type"] = handle:headers():get("content-type") or "",
    ["x-eastgate-target"] = target_of(state:get("eastgate.destination")),
    ["x-eastgate-source"] = peer_of(state),
    ["x-eastgate-address"] = state:get("eastgate.address") or "",
    ["x-eastgate-sni"] = sni_of(state),
    ["x-eastgate-host"] = state:get("eastgate.authority") or "",
    ["x-eastgate-path"] = state:get("eastgate.path") or "/",
  }, body:getBytes(0, body:length()), 5000)
  if answered[":status"] ~= "200" or not filtered then return fail(handle, "the list of tools cannot be shown") end
  handle:headers():replace("content-length", tostring(handle:body(true):setBytes(filtered)))
end

-- Returns whether an answer may have a list of tools; the answer to any batch may.
local function may_list(state, status)
  local asked = state:get("eastgate.mcp.method") == "tools/list" or state:get("eastgate.message") == "batch"
  return asked and status:sub(1, 1) == "2"
end

function envoy_on_response(handle)
  local info, headers = handle:streamInfo(), handle:headers()
  local state, decided = info:filterState(), info:dynamicMetadata():get("envoy.filters.http.rbac")
  local destination = DESTINATIONS[state:get("eastgate.destination") or ""]
  if not destination or not decided or decided["enforced_engine_result"] ~= "allowed" then return end
  if destination.backend and bound.give(headers, peer_of(state), scope_of(destination.backend)) == "bad" then
    return fail(handle, "the server gave a session id that cannot be used")
  end
  if not destination.tools or not may_list(state, headers:get(":status")) then return end
  if headers:get("content-encoding") then return fail(handle, "the list of tools cannot be read") end
  if not pcall(filter_tools, handle) then fail(handle, "the list of tools cannot be shown") end
end
