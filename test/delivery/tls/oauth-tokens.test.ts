import { expect, test } from 'vitest'
import { OauthTokens, parseTokenOutput, type RunTokenCommand } from '../../../src/delivery/tls/oauth-tokens.ts'
import { SECOND } from '../../../src/system/clock.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'

/** A command that prints the user and the number of the run. */
function numbered(lifetime = ''): { readonly runs: string[]; readonly run: RunTokenCommand } {
  const runs: string[] = []
  return { runs, run: async (user) => `${user}-${runs.push(user)}\n${lifetime}` }
}

test('a token is kept for its lifetime, less 30 s for the login', async () => {
  const clock = new VirtualClock()
  const tokens = new OauthTokens(clock, numbered('3600\n').run)
  expect(await tokens.get('ann')).toBe('ann-1')
  clock.jumpTo(clock.now() + 3569 * SECOND)
  expect(await tokens.get('ann')).toBe('ann-1')
  clock.jumpTo(clock.now() + SECOND)
  expect(await tokens.get('ann')).toBe('ann-2')
})

test.each([
  ['without a lifetime for 5 minutes', '', 270],
  ['with a short one for half of it', '20\n', 10],
])('a token %s', async (_, lifetime, seconds) => {
  const clock = new VirtualClock()
  const tokens = new OauthTokens(clock, numbered(lifetime).run)
  await tokens.get('ann')
  clock.jumpTo(clock.now() + seconds * SECOND - 1)
  expect(await tokens.get('ann')).toBe('ann-1')
  clock.jumpTo(clock.now() + 1)
  expect(await tokens.get('ann')).toBe('ann-2')
})

test('users have tokens of their own, and simultaneous logins of one user run the command once', async () => {
  const command = numbered()
  const tokens = new OauthTokens(new VirtualClock(), command.run)
  expect(await Promise.all([tokens.get('ann'), tokens.get('bob'), tokens.get('ann')])).toEqual(['ann-1', 'bob-2', 'ann-1'])
  expect(command.runs).toEqual(['ann', 'bob'])
})

test('a refused token is replaced once in 5 minutes; a refusal of an older one changes nothing', async () => {
  const clock = new VirtualClock()
  const tokens = new OauthTokens(clock, numbered('3600\n').run)
  expect(await tokens.replacement('ann', await tokens.get('ann'))).toBe('ann-2')
  expect(await tokens.replacement('ann', 'ann-1')).toBe('ann-2')
  clock.jumpTo(clock.now() + 300 * SECOND - 1)
  expect(await tokens.replacement('ann', 'ann-2')).toBeNull()
  expect(await tokens.get('ann')).toBe('ann-2')
  clock.jumpTo(clock.now() + 1)
  expect(await tokens.replacement('ann', 'ann-2')).toBe('ann-3')
})

test('a refused token that the command prints again is no replacement', async () => {
  const tokens = new OauthTokens(new VirtualClock(), async () => 'same\n3600')
  expect(await tokens.replacement('ann', await tokens.get('ann'))).toBeNull()
})

test('after a failure the command runs again', async () => {
  let works = false
  const tokens = new OauthTokens(new VirtualClock(), async () => {
    if (!works) throw new Error('no network')
    return 'token'
  })
  await expect(tokens.get('ann')).rejects.toThrow('no network')
  works = true
  expect(await tokens.get('ann')).toBe('token')
})

test.each([
  ['nothing', '', 'no access token'],
  ['text with blanks', 'Error: not logged in\n', 'no access token'],
  ['a control character', 'tok\u0001en\n', 'no access token'],
  ['a lifetime that is no number', 'token\nsoon\n', 'no lifetime'],
])('output with %s is refused, and is not in the error', (_, output, why) => {
  expect(() => parseTokenOutput(output)).toThrow(why)
  expect(() => parseTokenOutput(output)).not.toThrow(/not logged in|tok.en|soon/)
})

test.each(['ya29.a0AfH6SMB-_~+/==', 'eyJhbGciOi.J9'])('%s is a token', (token) => {
  expect(parseTokenOutput(`${token}\r\n`).text).toBe(token)
})
