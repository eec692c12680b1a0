-- Notes the identity that a verified token proves, and takes the token off the request: who gets it could use it as well.
-- Before this stand: TRUSTED, what the identities begin with that tokens may name; and CARRIER, at a gateway, the header
-- in which its authorizer gets the token, or nil. A certificate comes before a token. A workload then leaves the token
-- alone, since a gateway may have been asked to pass it on; a gateway takes every token that it would believe.

local LONGEST_IDENTITY = 2048  -- bytes

local function is_identity(text)
  if not text or #text > LONGEST_IDENTITY or text:sub(1, #TRUSTED) ~= TRUSTED then return false end
  for segment in (text:sub(#TRUSTED + 1) .. "/"):gmatch("([^/]*)/") do
    if segment == "." or segment == ".." or not segment:match("^[%w._-]+$") then return false end
  end
  return true
end

function envoy_on_request(handle)
  local headers, state = handle:headers(), handle:streamInfo():filterState()
  local claim, peer = state:get("eastgate.claim"), state:get("eastgate.peer")
  if not is_identity(claim) then return end
  local counts = peer == "none" or peer == "-"
  if not counts and not CARRIER then return end
  if CARRIER then headers:replace(CARRIER, headers:get("authorization") or "") end
  headers:remove("authorization")
  if counts then state:set("eastgate.token", "envoy.string", claim) end
end
