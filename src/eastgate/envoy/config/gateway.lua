-- Leads requests of a gateway to their destinations, and notes what policies look at.
-- Before this stand: GATEWAY, its name and port; TLS, whether clients speak it. RULES has the destinations of each rule that routing may name: their ids and weights.
-- DESTINATIONS says of each what is done there. What was noted of a request is `eastgate.*` in filter state; headers
-- of that name carry it to the authorizer, and no client can send one.

local METADATA_ROUTE = "route_shadow_effective_policy_id"
local UNCLEAR, NOWHERE = "unclear", "nowhere"
local WITHOUT_BODY = { GET = true, DELETE = true, HEAD = true, OPTIONS = true }
local NAMED = {
  ["tools/call"] = "name", ["prompts/get"] = "name",
  ["resources/read"] = "uri", ["resources/subscribe"] = "uri", ["resources/unsubscribe"] = "uri",
}
local OVERRIDES = { "x-http-method", "x-http-method-override", "x-method-override" }

math.randomseed(os.time() + (tonumber(tostring({}):match("0x(%x+)") or "0", 16) % 2147483647))

local function peer_of(state)
  local peer = state:get("eastgate.peer")
  return (peer and peer ~= "-") and peer or "none"
end

-- Routing

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

local function routed(metadata)
  local named = metadata:get("envoy.filters.http.rbac")
  local rule = named and named[METADATA_ROUTE]
  rule = rule and rule:match("^200:(.*)$")
  if not rule then return UNCLEAR end
  return RULES[rule] and draw(RULES[rule]) or rule
end

-- MCP

local function note_message(headers, state, metadata)
  local method = headers:get(":method")
  local message = metadata:get("envoy.filters.http.mcp")
  local read = message and type(message.method) == "string" and not message.is_exceeding_limit
  if read and method == "POST" and not headers:get("content-encoding") then
    state:set("eastgate.mcp.method", "envoy.string", message.method)
    local member = NAMED[message.method]
    local name = member and type(message.params) == "table" and message.params[member]
    if type(name) == "string" then state:set("eastgate.mcp.name", "envoy.string", name) end
    return (member and type(name) ~= "string") and "unread" or "read"
  end
  if WITHOUT_BODY[method] and not headers:get("upgrade") then return "none" end
  return "unread"
end

-- Requests

function envoy_on_request(handle)
  local headers, info = handle:headers(), handle:streamInfo()
  local state, metadata = info:filterState(), info:dynamicMetadata()
  local id = routed(metadata)
  local destination = DESTINATIONS[id]
  local message = "none"
  if destination and destination.messages then
    message = note_message(headers, state, metadata)
    for _, name in ipairs(OVERRIDES) do headers:remove(name) end
    headers:remove("last-event-id")  -- it would replay answers that were meant for a request of before
    if destination.tools then headers:remove("accept-encoding") end
  end
  state:set("eastgate.message", "envoy.string", message)
  state:set("eastgate.destination", "envoy.string", id)
  state:set("eastgate.host", "envoy.string", headers:get(":authority") or "")  -- for the log: routes may rewrite it
  headers:replace("x-eastgate-gateway", GATEWAY)
  headers:replace("x-eastgate-destination", id)
  headers:replace("x-eastgate-peer", peer_of(state))
  headers:replace("x-eastgate-address", state:get("eastgate.address") or "")
  if TLS then headers:replace("x-forwarded-proto", "https") end
  handle:clearRouteCache()
end

-- Answers

local function refuse(handle, body)
  local text = '{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"the list of tools cannot be shown"}}'
  handle:headers():replace("content-type", "application/json")
  handle:headers():replace(":status", "502")
  handle:headers():replace("content-length", tostring(body:setBytes(text)))
end

local function filter_tools(handle, state)
  local headers, body = handle:headers(), handle:body(true)
  if headers:get("content-encoding") then return refuse(handle, body) end
  local answered, filtered = handle:httpCall("tools", {
    [":method"] = "POST", [":path"] = "/tools", [":authority"] = "authorizer",
    ["content-type"] = headers:get("content-type") or "",
    ["x-eastgate-gateway"] = GATEWAY,
    ["x-eastgate-destination"] = state:get("eastgate.destination"),
    ["x-eastgate-peer"] = peer_of(state),
    ["x-eastgate-address"] = state:get("eastgate.address") or "",
  }, body:getBytes(0, body:length()), 5000)
  if answered[":status"] ~= "200" or not filtered then return refuse(handle, body) end
  headers:replace("content-length", tostring(body:setBytes(filtered)))
end

function envoy_on_response(handle)
  local info = handle:streamInfo()
  local state = info:filterState()
  local destination = DESTINATIONS[state:get("eastgate.destination") or ""]
  if not destination or not destination.tools then return end
  if state:get("eastgate.mcp.method") ~= "tools/list" or handle:headers():get(":status") ~= "200" then return end
  local decided = info:dynamicMetadata():get("envoy.filters.http.rbac")
  if decided and decided["enforced_engine_result"] == "allowed" then filter_tools(handle, state) end
end
