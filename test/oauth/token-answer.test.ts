import fc from 'fast-check'
import { expect, test } from 'vitest'
import { adviceFor } from '../../src/oauth/advice.ts'
import { tokenAnswer, type TokenAnswer } from '../../src/oauth/token-answer.ts'
import { commandOutput } from '../../src/oauth/command-output.ts'
import { oauthTable } from '../support/oauth-clients.ts'

const answer = (status: number, body: unknown): TokenAnswer =>
  tokenAnswer({ kind: 'reply', status, body: typeof body === 'string' ? body : JSON.stringify(body) })

const AADSTS = (number: number) => `AADSTS${number}: text. Trace ID: 0a1b Correlation ID: 2c3d Timestamp: 2026-01-01 contoso`

test.each<[string, number, unknown, TokenAnswer]>([
  ['a token', 200, { access_token: 'a.b', token_type: 'Bearer', expires_in: 3599 }, { kind: 'token', token: 'a.b', lifetime: 3_599_000 }],
  [
    'a lifetime as a text',
    200,
    { access_token: 'a', token_type: 'bearer', expires_in: '60' },
    { kind: 'token', token: 'a', lifetime: 60_000 },
  ],
  ['no lifetime', 200, { access_token: 'a' }, { kind: 'token', token: 'a', lifetime: 300_000 }],
  ...[null, true, 'soon', '', '0x10', 'Infinity', [60], { seconds: 60 }].map(
    (given) =>
      [
        `the lifetime ${JSON.stringify(given)}, which is no number`,
        200,
        { access_token: 'a', expires_in: given },
        { kind: 'token', token: 'a', lifetime: 300_000 },
      ] satisfies [string, number, unknown, TokenAnswer],
  ),
  ...[1e12, '1000000000000', 1e300, 86_401].map(
    (given) =>
      [
        `the lifetime ${given}, longer than a day`,
        200,
        { access_token: 'a', expires_in: given },
        { kind: 'token', token: 'a', lifetime: 86_400_000 },
      ] satisfies [string, number, unknown, TokenAnswer],
  ),
  ...[0, -1, '-3600', -1e12].map(
    (given) =>
      [
        `the lifetime ${given}, which has ended`,
        200,
        { access_token: 'a', expires_in: given },
        { kind: 'temporary', why: 'status 200 with a token that has ended (expires_in)' },
      ] satisfies [string, number, unknown, TokenAnswer],
  ),
  [
    'a new refresh token',
    200,
    { access_token: 'a', refresh_token: 'r' },
    { kind: 'token', token: 'a', lifetime: 300_000, refreshToken: 'r' },
  ],
  ['no token', 200, { token_type: 'Bearer' }, { kind: 'temporary', why: 'status 200 without a token' }],
  ['a token with a line break', 200, { access_token: 'a\r\nb' }, { kind: 'temporary', why: 'status 200 without a token' }],
  ['a token of another type', 200, { access_token: 'a', token_type: 'mac' }, { kind: 'temporary', why: expect.any(String) as string }],
  ['a page', 200, '<html>', { kind: 'temporary', why: 'status 200 without a token' }],
  ['a redirect', 302, '', { kind: 'temporary', why: 'status 302 without an error code' }],
  ['a proxy', 403, '<html>', { kind: 'temporary', why: 'status 403 without an error code' }],
  ['trouble', 500, { error: 'invalid_client' }, { kind: 'temporary', why: 'invalid_client' }],
  ['too many requests', 429, '', { kind: 'temporary', why: 'status 429' }],
  ['a busy authority', 400, { error: 'temporarily_unavailable' }, { kind: 'temporary', why: 'temporarily_unavailable' }],
  [
    'a wrong secret',
    401,
    { error: 'invalid_client', error_description: AADSTS(7000215) },
    { kind: 'refused', error: 'invalid_client', why: 'invalid_client (AADSTS7000215)' },
  ],
  ['a login that has ended', 400, { error: 'invalid_grant' }, { kind: 'refused', error: 'invalid_grant', why: 'invalid_grant' }],
  [
    'a device code in wait',
    400,
    { error: 'authorization_pending' },
    { kind: 'refused', error: 'authorization_pending', why: 'authorization_pending' },
  ],
])('%s', (_, status, body, expected) => expect(answer(status, body)).toEqual(expected))

test('a failure of the connection is temporary', () => {
  expect(tokenAnswer({ kind: 'failed', why: 'id.example: refused' })).toEqual({ kind: 'temporary', why: 'id.example: refused' })
})

test('no answer throws, and no reason has a part of a description or of a token', () => {
  const secret = 'sEcReT'
  const member = fc.oneof(fc.constant(secret), fc.constant(` ${secret}\n`), fc.jsonValue())
  const body = fc.oneof(
    fc.record(
      { error: member, error_description: member, access_token: fc.constant(`${secret} x`), expires_in: member },
      { requiredKeys: [] },
    ),
    fc.jsonValue(),
    fc.string(),
  )
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 599 }), body, (status, given) => {
      const found = answer(status, given)
      if (found.kind === 'token') return
      expect(found.why).toMatch(/^[\w .()-]{1,80}$/)
      if (typeof given === 'object' && given !== null && (given as { error?: unknown }).error !== secret)
        expect(found.why).not.toContain(secret)
    }),
  )
})

test.each([
  ['a.b\n3600\n', { kind: 'token', token: 'a.b', lifetime: 3_600_000 }],
  ['ya29.a0AfH6SMB-_~+/==\r\n', { kind: 'token', token: 'ya29.a0AfH6SMB-_~+/==', lifetime: 300_000 }],
  ['', { kind: 'temporary', why: 'the first line of its output is no access token' }],
  ['Error: not logged in\n', { kind: 'temporary', why: 'the first line of its output is no access token' }],
  ['tok\u0001en\n', { kind: 'temporary', why: 'the first line of its output is no access token' }],
  ['token\nsoon\n', { kind: 'temporary', why: 'the second line of its output is no lifetime in seconds' }],
])('the output %j of a command', (output, expected) => expect(commandOutput(output)).toEqual(expected))

const M365 = { provider: 'microsoft', tenant: 't', grant: 'client_credentials', client_id: 'app', client_secret_file: '/etc/s' }
const refused = (why: string) => ({ kind: 'refused', error: why.split(' ')[0] ?? '', why }) as const

test.each([
  ['invalid_client (AADSTS7000222)', 'create a new one, write it to /etc/s, and reload'],
  ['invalid_client (AADSTS7000215)', 'not its id, to /etc/s'],
  ['invalid_client (AADSTS1)', 'correct client_id or the secret of the application'],
  ['invalid_scope', 'correct scope'],
  ['interaction_required', 'correct [oauth.m365], and reload'],
])('%s has advice', (why, advice) => expect(adviceFor(oauthTable(M365), refused(why))).toContain(advice))

test('the end of a login names the command for the next one', () => {
  const { client_secret_file: _, ...login } = { ...M365, grant: 'refresh_token', refresh_token_file: '/r' }
  expect(adviceFor(oauthTable(login), refused('invalid_grant'))).toBe('the login has ended: run deferd oauth login m365')
})
