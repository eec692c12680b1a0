-- Notes the identity in a verified token, and removes the token from the request: another server could misuse it.
-- Defined before this script: TRUSTED, the prefix of all identities that tokens may name; and CARRIER, at a gateway,
-- the header in which its authorizer gets the token, or nil. A certificate comes before a token. Then a workload leaves
-- the token in the request, since a gateway may have forwarded it; a gateway removes every token that it would accept.

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
