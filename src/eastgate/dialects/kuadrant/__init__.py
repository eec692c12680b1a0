"""Kuadrant and its authorizer Authorino: authorization at a Gateway or a route.

    policies     the AuthPolicy of today, `kuadrant.io`
    authconfigs  the AuthConfig of an Authorino without Kuadrant, `authorino.kuadrant.io`
    proposal     the AuthPolicy of the proposal of 2022, `apim.kuadrant.io`

All of them embed auth schemes: `schemes` reads one, and `authorino` evaluates it.
"""
