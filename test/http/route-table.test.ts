import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { describeProblem } from '../../src/http/command-failure.ts'
import { checkValue } from '../../src/presentation/checked-value.ts'
import { matchRoute, route, type Answer, type Route } from '../../src/http/route-table.ts'

const EMPTY: Answer = { kind: 'json', status: 200, value: {} }
const at = (method: Route['method'], path: string): Route => route({ method, path, role: 'local', handler: () => EMPTY })

const ROUTES = [
  at('GET', '/destinations'),
  at('GET', '/destinations/all'),
  at('GET', '/destinations/:name'),
  at('DELETE', '/destinations/:name'),
  at('POST', '/destinations/:name/suspend'),
]

describe('matchRoute', () => {
  test.each([
    ['GET', '/destinations', '/destinations', {}],
    ['HEAD', '/destinations', '/destinations', {}],
    ['GET', '/destinations/all', '/destinations/all', {}],
    ['GET', '/destinations/gmail.com', '/destinations/:name', { name: 'gmail.com' }],
    ['GET', '/destinations/smtp%3A%5Brelay%5D%3A587', '/destinations/:name', { name: 'smtp:[relay]:587' }],
    ['GET', '/destinations/a%2Fb', '/destinations/:name', { name: 'a/b' }],
    ['POST', '/destinations/x/suspend', '/destinations/:name/suspend', { name: 'x' }],
  ])('%s %s finds %s', (method, path, pattern, parameters) => {
    expect(matchRoute(ROUTES, method, path)).toMatchObject({ kind: 'found', route: { path: pattern }, parameters })
  })

  test.each(['', '/', '/destination', '/destinations/', '/destinations/x/', '/destinations/x/y/z', '/destinations/%zz', '//destinations'])(
    '"%s" is an unknown path',
    (path) => {
      expect(matchRoute(ROUTES, 'GET', path)).toEqual({ kind: 'unknown-path' })
    },
  )

  test.each([
    ['POST', '/destinations', ['GET', 'HEAD']],
    ['POST', '/destinations/x', ['GET', 'HEAD', 'DELETE']],
    ['get', '/destinations/x/suspend', ['POST']],
  ])('%s %s is a wrong method, and the allowed ones are named', (method, path, allowed) => {
    expect(matchRoute(ROUTES, method, path)).toEqual({ kind: 'wrong-method', allowed })
  })
})

describe('describeProblem', () => {
  const shape = z.strictObject({ who: z.string(), filter: z.strictObject({ sender: z.string().optional() }) })
  const problem = (value: unknown): string => {
    const checked = checkValue(shape, value)
    return checked.ok ? '' : describeProblem(checked.invalid)
  }

  test('names a member that the shape does not have, with its place', () => {
    expect(problem({ who: 'root', filter: { subject: 'x' } })).toBe(
      'unknown member "subject" of filter; if this daemon is older than the command, restart it',
    )
    expect(problem({ who: 'root', filter: {}, why: 'x', when: 'y' })).toBe(
      'unknown member "why", "when"; if this daemon is older than the command, restart it',
    )
  })

  test('names a missing member', () => {
    expect(problem({ who: 'root' })).toBe('missing member "filter"; use a command of the daemon\'s version')
  })

  test('names a member of another type', () => {
    expect(problem({ who: 1, filter: {} })).toBe('who: expected a string, got 1')
    expect(problem([])).toBe('expected an object, got an empty array')
  })
})
