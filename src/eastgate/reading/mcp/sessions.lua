-- Session ids of MCP servers, bound to a peer and a backend; `sessions.py` is the same in Python.
--   local bound = sessions.new(key)
--   bound.wrap(peer, backend, id)              what to hand to the client; nil for an id that is not allowed
--   bound.unwrap(peer, backend, token)         the server's id; nil where it was not handed to this peer for this backend
--   bound.take(headers, peer, backend)         unwraps the header of a request: "none", "ok" or "bad"
--   bound.give(headers, peer, backend)         wraps the header of a response: "none", "ok" or "bad" (then it is removed)

local sessions = (function()
  local band, bnot, bxor, ror, rshift, tobit, tohex =
    bit.band, bit.bnot, bit.bxor, bit.ror, bit.rshift, bit.tobit, bit.tohex
  local byte, char, rep, concat = string.byte, string.char, string.rep, table.concat

  local HEADER, MAX_LENGTH, TAG_LENGTH, BLOCK = "mcp-session-id", 2048, 32, 64
  local INITIAL = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
  }
  local ROUNDS = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
  }
  for index = 1, 8 do INITIAL[index] = tobit(INITIAL[index]) end
  for index = 1, 64 do ROUNDS[index] = tobit(ROUNDS[index]) end

  -- SHA-256

  local words = {}

  -- The state after one more block, which begins at this byte of the text.
  local function compressed(state, text, from)
    for index = 1, 16 do
      local first, second, third, fourth = byte(text, from + index * 4 - 4, from + index * 4 - 1)
      words[index] = tobit(first * 16777216 + second * 65536 + third * 256 + fourth)
    end
    for index = 17, 64 do
      local early, late = words[index - 15], words[index - 2]
      words[index] = tobit(
        words[index - 16] + bxor(ror(early, 7), ror(early, 18), rshift(early, 3))
        + words[index - 7] + bxor(ror(late, 17), ror(late, 19), rshift(late, 10)))
    end
    local a, b, c, d = state[1], state[2], state[3], state[4]
    local e, f, g, h = state[5], state[6], state[7], state[8]
    for index = 1, 64 do
      local one = tobit(
        h + bxor(ror(e, 6), ror(e, 11), ror(e, 25)) + bxor(band(e, f), band(bnot(e), g))
        + ROUNDS[index] + words[index])
      local two = tobit(bxor(ror(a, 2), ror(a, 13), ror(a, 22)) + bxor(band(a, b), band(a, c), band(b, c)))
      h, g, f, e, d, c, b, a = g, f, e, tobit(d + one), c, b, a, tobit(one + two)
    end
    return {
      tobit(state[1] + a), tobit(state[2] + b), tobit(state[3] + c), tobit(state[4] + d),
      tobit(state[5] + e), tobit(state[6] + f), tobit(state[7] + g), tobit(state[8] + h),
    }
  end

  local function big_endian(number)
    return char(rshift(number, 24), band(rshift(number, 16), 255), band(rshift(number, 8), 255), band(number, 255))
  end

  -- The state at the end of a text, of which the state before it has already taken so many bytes in. The length in
  -- bits is less than 2^32 here.
  local function finished(state, text, before)
    local zeros = (BLOCK - (#text + 9) % BLOCK) % BLOCK
    local whole = text .. "\128" .. rep("\0", zeros + 4) .. big_endian((#text + before) * 8)
    for from = 1, #whole, BLOCK do state = compressed(state, whole, from) end
    return state
  end

  local function as_bytes(state)
    local parts = {}
    for index = 1, 8 do parts[index] = big_endian(state[index]) end
    return concat(parts)
  end

  local function as_hex(state)
    local parts = {}
    for index = 1, 8 do parts[index] = tohex(state[index]) end
    return concat(parts)
  end

  -- HMAC. What depends on the key only is computed once.

  local function authenticator(key)
    if #key > BLOCK then key = as_bytes(finished(INITIAL, key, 0)) end
    key = key .. rep("\0", BLOCK - #key)
    local inner = compressed(INITIAL, key:gsub(".", function(c) return char(bxor(byte(c), 0x36)) end), 1)
    local outer = compressed(INITIAL, key:gsub(".", function(c) return char(bxor(byte(c), 0x5c)) end), 1)
    return function(message)
      return as_hex(finished(outer, as_bytes(finished(inner, message, BLOCK)), BLOCK))
    end
  end

  -- Compares all characters, whichever differ.
  local function equal(left, right)
    if #left ~= #right then return false end
    local difference = 0
    for index = 1, #left do difference = bit.bor(difference, bxor(byte(left, index), byte(right, index))) end
    return difference == 0
  end

  local function is_allowed(id) return #id > 0 and #id <= MAX_LENGTH and not id:find("[^\33-\126]") end

  local function is_name(name) return name ~= nil and #name > 0 and not name:find("%z") end

  local function new(key)
    local authenticated = authenticator(key)
    local bound = { authenticated = authenticated }

    local function tag(peer, backend, id)
      return authenticated(peer .. "\0" .. backend .. "\0" .. id):sub(1, TAG_LENGTH)
    end

    function bound.wrap(peer, backend, id)
      if not is_allowed(id) or not is_name(peer) or not is_name(backend) then return nil end
      return id .. "." .. tag(peer, backend, id)
    end

    function bound.unwrap(peer, backend, token)
      if #token <= TAG_LENGTH + 1 or byte(token, -TAG_LENGTH - 1) ~= 46 then return nil end
      local id = token:sub(1, -TAG_LENGTH - 2)
      if not is_allowed(id) or not is_name(peer) or not is_name(backend) then return nil end
      return equal(tag(peer, backend, id), token:sub(-TAG_LENGTH)) and id or nil
    end

    local function replaced(headers, convert, peer, backend)
      local count = headers:getNumValues(HEADER)
      if count == 0 then return "none" end
      local value = count == 1 and convert(peer, backend, headers:get(HEADER)) or nil
      headers:remove(HEADER)
      if not value then return "bad" end
      headers:add(HEADER, value)
      return "ok"
    end

    function bound.take(headers, peer, backend) return replaced(headers, bound.unwrap, peer, backend) end

    function bound.give(headers, peer, backend) return replaced(headers, bound.wrap, peer, backend) end

    return bound
  end

  return { new = new }
end)()
