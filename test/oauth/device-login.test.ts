import { expect, test } from 'vitest'
import type { AskAuthority, AuthorityReply } from '../../src/oauth/authority.ts'
import { deviceAnswer, deviceLogin, stepAfter, type DeviceCode } from '../../src/oauth/device-login.ts'
import type { OauthClient } from '../../src/oauth/oauth-client.ts'
import { MINUTE, SECOND, sleep, type Duration } from '../../src/system/clock.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { driven } from './rotating-authority.ts'

const DEVICE = 'https://login.example/devicecode'
const TOKEN = 'https://login.example/token'

const client = (more: Partial<OauthClient['table']> = {}, proof: OauthClient['proof'] = { kind: 'none' }): OauthClient => ({
  table: {
    name: 'm365',
    provider: 'microsoft',
    grant: 'refresh_token',
    tokenUrl: TOKEN,
    deviceUrl: DEVICE,
    scope: 'https://outlook.office.com/SMTP.Send offline_access',
    audience: '',
    clientId: 'client-1',
    clientSecretFile: '',
    clientCertificateFile: '',
    refreshTokenFile: '/etc/deferd/m365.token',
    serviceAccountFile: '',
    caFile: '',
    command: '',
    where: 'test',
    ...more,
  },
  proof,
  refreshToken: null,
  account: null,
  ca: null,
  runCommand: null,
})

const reply = (status: number, body: object): AuthorityReply => ({ kind: 'reply', status, body: JSON.stringify(body) })
const refusal = (error: string): AuthorityReply => reply(400, { error, error_description: 'AADSTS70016: Trace ID: 1234' })
const AWAY: AuthorityReply = { kind: 'failed', why: 'login.example: connect ECONNREFUSED' }
const CODE = {
  device_code: 'device-secret',
  user_code: 'ABCD-1234',
  verification_uri: 'https://login.example/device',
  expires_in: 900,
  interval: 5,
}
const PENDING = refusal('authorization_pending')
const GRANTED = reply(200, { access_token: 'access-1', token_type: 'Bearer', expires_in: 3600, refresh_token: 'refresh-1' })

/** Logs in at an authority that gives these answers in order, the last one for ever. */
async function logIn(answers: readonly AuthorityReply[], as = client(), stopAfter: Duration | null = null) {
  const clock = new VirtualClock()
  const began = clock.monotonic()
  const polls: { readonly at: number; readonly url: string; readonly form: Record<string, string> }[] = []
  const shown: DeviceCode[] = []
  const ask: AskAuthority = async (url, form) => {
    polls.push({ at: (clock.monotonic() - began) / SECOND, url, form: Object.fromEntries(form) })
    await sleep(clock, 0)
    return answers[Math.min(polls.length, answers.length) - 1] ?? AWAY
  }
  const stop = new AbortController()
  if (stopAfter !== null) clock.after(stopAfter, () => stop.abort())
  const deps = { ask, clock, id: () => `id-${polls.length}`, show: async (code: DeviceCode) => void shown.push(code), signal: stop.signal }
  const result = await driven(clock, deviceLogin(as, deps))
  return { result, polls, shown, times: polls.map(({ at }) => at) }
}

test('the person is shown code and address, and the client polls at the interval until the login', async () => {
  const { result, polls, shown, times } = await logIn([reply(200, CODE), PENDING, PENDING, GRANTED])
  expect(result).toEqual({ kind: 'login', refreshToken: 'refresh-1', token: 'access-1', lifetime: 60 * MINUTE })
  expect(shown).toMatchObject([
    { userCode: 'ABCD-1234', verificationUri: 'https://login.example/device', completeUri: null, lifetime: 15 * MINUTE },
  ])
  expect(times).toEqual([0, 5, 10, 15])
  expect(polls[0]).toMatchObject({
    url: DEVICE,
    form: { client_id: 'client-1', scope: 'https://outlook.office.com/SMTP.Send offline_access' },
  })
  expect(polls[1]?.url).toBe(TOKEN)
  expect(polls[1]?.form).toEqual({
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    device_code: 'device-secret',
    client_id: 'client-1',
  })
})

test('a client with a secret proves itself in each request, and names the audience in the first one', async () => {
  const { polls } = await logIn([reply(200, CODE), GRANTED], client({ audience: 'mail' }, { kind: 'secret', secret: 's3cret' }))
  expect(polls.map(({ form }) => [form['client_secret'], form['audience']])).toEqual([
    ['s3cret', 'mail'],
    ['s3cret', undefined],
  ])
})

test('slow_down adds 5 s to the interval, for good', async () => {
  const { times } = await logIn([reply(200, CODE), refusal('slow_down'), PENDING, refusal('slow_down'), PENDING, GRANTED])
  expect(times).toEqual([0, 5, 15, 25, 40, 55])
})

test('after failures of the connection the wait doubles up to a minute; an answer ends that', async () => {
  const { times, result } = await logIn([reply(200, CODE), AWAY, AWAY, reply(503, {}), AWAY, AWAY, PENDING, GRANTED])
  expect(times).toEqual([0, 5, 15, 35, 75, 135, 195, 200])
  expect(result?.kind).toBe('login')
})

test('the code expires: at the authority, or by its time', async () => {
  const why = 'the code has expired before a login: repeat the command, and enter the new code'
  expect((await logIn([reply(200, CODE), refusal('expired_token')])).result).toEqual({ kind: 'failed', reason: 'expired', why })
  const { result, times } = await logIn([reply(200, { ...CODE, expires_in: 12 }), PENDING])
  expect([result, times]).toEqual([{ kind: 'failed', reason: 'expired', why }, [0, 5, 10]])
  expect((await logIn([reply(200, CODE), AWAY])).result).toMatchObject({ reason: 'expired' })
})

test.each(['access_denied', 'authorization_declined'])('%s ends the login', async (error) => {
  const { result } = await logIn([reply(200, CODE), PENDING, refusal(error)])
  expect(result).toMatchObject({ kind: 'failed', reason: 'denied', why: expect.stringContaining('declined') as string })
})

test('other refusals end the login, with their code and number alone', async () => {
  const late = await logIn([reply(200, CODE), refusal('invalid_client')])
  expect(late.result).toEqual({
    kind: 'failed',
    reason: 'refused',
    why: 'the authority refuses the login: invalid_client (AADSTS70016): correct client_id or the secret of the application, and reload, then repeat the command',
  })
  const early = await logIn([refusal('unauthorized_client')])
  expect(early.result).toMatchObject({
    reason: 'refused',
    why: 'the authority gives no code: unauthorized_client (AADSTS70016): allow the application this grant, and reload, then repeat the command',
  })
  expect(early.polls).toHaveLength(1)
})

test('without a connection there is no code', async () => {
  const { result, shown } = await logIn([AWAY])
  expect(result).toMatchObject({ reason: 'unreachable', why: expect.stringContaining('connect ECONNREFUSED') as string })
  expect(shown).toEqual([])
})

test('a token without a refresh token is no login', async () => {
  const { result } = await logIn([reply(200, CODE), reply(200, { access_token: 'access-1', expires_in: 3600 })])
  expect(result).toMatchObject({ reason: 'no-refresh-token', why: expect.stringContaining('offline_access') as string })
})

test('an interrupted login ends at once', async () => {
  const { result, times } = await logIn([reply(200, CODE), PENDING], client(), 7 * SECOND)
  expect([result, times]).toEqual([{ kind: 'failed', reason: 'stopped', why: 'the login was interrupted' }, [0, 5]])
})

test.each<[string, object, object]>([
  ['no interval: 5 s', { interval: undefined }, { interval: 5 * SECOND }],
  ['a wrong one: 5 s', { interval: -1 }, { interval: 5 * SECOND }],
  ['one as text', { interval: '7' }, { interval: 7 * SECOND }],
  ['a huge one: a minute', { interval: 1e9 }, { interval: MINUTE }],
  ['no lifetime: 15 min', { expires_in: undefined }, { lifetime: 15 * MINUTE }],
  ['a huge lifetime: an hour', { expires_in: 1e300 }, { lifetime: 60 * MINUTE }],
  [
    'the name of Google for the address',
    { verification_uri: undefined, verification_url: 'https://g.example' },
    { verificationUri: 'https://g.example' },
  ],
  ['an address with the code', { verification_uri_complete: 'https://g.example/?c=1' }, { completeUri: 'https://g.example/?c=1' }],
  ['an address that is none', { verification_uri_complete: 'javascript:1' }, { completeUri: null }],
])('an answer with %s', (_, more, expected) => {
  expect(deviceAnswer(reply(200, { ...CODE, ...more }))).toMatchObject({ kind: 'code', code: expected })
})

test.each<[string, object]>([
  ['no device code', { device_code: undefined }],
  ['an empty one', { device_code: '' }],
  ['a code that a terminal would act on', { user_code: '\u001b[2J' }],
  ['no address', { verification_uri: undefined }],
  ['an address that is none', { verification_uri: 'file:///etc/passwd' }],
])('an answer with %s is none', (_, more) => {
  expect(deviceAnswer(reply(200, { ...CODE, ...more }))).toEqual({ kind: 'temporary', why: 'status 200 without a device code' })
})

test('the wait after failures is never shorter than the interval', () => {
  const polling = { interval: 90 * SECOND, wait: 90 * SECOND }
  expect(stepAfter({ kind: 'temporary', why: '' }, polling)).toEqual({ kind: 'poll', polling })
})
