/** The simulated authorization server without network: forms and instants in, answers out. */
import { createHash, createPublicKey, X509Certificate } from 'node:crypto'
import { importPKCS8, importSPKI, jwtVerify, SignJWT, type JWTPayload } from 'jose'
import { describe, expect, test } from 'vitest'
import { authoritySettings, type AuthorityOptions } from '../../../src/testkit/options/authority-options.ts'
import { AuthorityEngine } from '../../../src/testkit/oauth/authority-engine.ts'
import { AuthorityRules, FAILURE_NAMES, FAILURES, type AuthorityRule } from '../../../src/testkit/oauth/authority-rule.ts'
import { DEVICE_GRANT, JWT_GRANT } from '../../../src/testkit/oauth/token-endpoint.ts'
import { CLIENT_CERTIFICATE, CLIENT_KEY } from '../../support/rsa-certificate.ts'

const START = Date.UTC(2026, 0, 1)
const TOKEN_URL = 'https://login.microsoftonline.com/contoso.example/oauth2/v2.0/token'
const PUBLIC_KEY = createPublicKey(CLIENT_KEY).export({ type: 'spki', format: 'pem' }).toString()
const EXCHANGE = 'https://outlook.office365.com'
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** An engine that is asked with forms. Times are in seconds since its start. */
function engineOf(options: Partial<AuthorityOptions> = {}, rules: readonly AuthorityRule[] = []) {
  const settings = authoritySettings({ clients: { app: { secret: 's3cret', certificate: CLIENT_CERTIFICATE }, phone: {} }, ...options })
  const engine = new AuthorityEngine({ settings, rules: new AuthorityRules(rules), seed: Buffer.from('test'), startedAt: START })
  const post = (path: string, form: Record<string, string>, at: number) =>
    engine.answer(
      { method: 'POST', path, type: 'application/x-www-form-urlencoded', body: new URLSearchParams(form).toString() },
      START + at * 1000,
      at * 1000,
    )
  const json = (answered: ReturnType<typeof post>): Readonly<Record<string, unknown>> => ({
    status: answered.answer?.status,
    ...(JSON.parse(answered.answer?.body ?? '{}') as Record<string, unknown>),
  })
  const paths = { microsoft: '/contoso.example/oauth2/v2.0', google: '', other: '' }[settings.provider]
  const deviceName = { microsoft: 'devicecode', google: 'device/code', other: 'device_authorization' }[settings.provider]
  return {
    engine,
    raw: (form: Record<string, string>, at = 0) => post(`${paths}/token`, form, at),
    token: (form: Record<string, string>, at = 0) => json(post(`${paths}/token`, form, at)),
    device: (form: Record<string, string>, at = 0) => json(post(`${paths}/${deviceName}`, form, at)),
    post: (path: string, form: Record<string, string>) => json(post(path, form, 0)),
    /** Claims of an access token whose signature an independent library has verified. */
    claims: async (text: unknown, at = 0): Promise<JWTPayload> => {
      const key = await importSPKI(engine.endpoint.tokens.publicKey.export({ type: 'spki', format: 'pem' }).toString(), 'EdDSA')
      return (await jwtVerify(String(text), key, { currentDate: new Date(START + at * 1000) })).payload
    },
  }
}

const CREDENTIALS = { grant_type: 'client_credentials', client_id: 'app', client_secret: 's3cret', scope: `${EXCHANGE}/.default` }

describe('client credentials', () => {
  test('give a token with the audience, the roles and the lifetime of the application', async () => {
    const { token, claims } = engineOf({ lifetime: '10m' })
    const answer = token(CREDENTIALS)
    expect(answer).toMatchObject({ status: 200, token_type: 'Bearer', expires_in: 600, ext_expires_in: 600 })
    expect(answer).not.toHaveProperty('refresh_token')
    expect(await claims(answer['access_token'])).toMatchObject({
      aud: EXCHANGE,
      iss: 'https://sts.windows.net/contoso.example/',
      appid: 'app',
      tid: 'contoso.example',
      roles: ['SMTP.SendAsApp'],
      iat: START / 1000,
      exp: START / 1000 + 600,
    })
  })

  test('without the consent of an administrator give a token without roles, for Graph one with its audience', async () => {
    const { token, claims } = engineOf({ clients: { app: { secret: 's3cret', roles: [] } } })
    expect(await claims(token(CREDENTIALS)['access_token'])).not.toHaveProperty('roles')
    const graph = token({ ...CREDENTIALS, scope: 'https://graph.microsoft.com/.default' })
    expect(await claims(graph['access_token'])).toMatchObject({ aud: 'https://graph.microsoft.com' })
  })

  test.each([
    ['a wrong secret', { client_secret: 'wrong' }, 401, 'invalid_client', 7_000_215],
    ['an unknown client', { client_id: 'other' }, 400, 'unauthorized_client', 700_016],
    ['a scope for people', { scope: 'https://outlook.office.com/SMTP.Send' }, 400, 'invalid_scope', 1_002_012],
    ['an unknown resource', { scope: 'https://other.example/.default' }, 400, 'invalid_resource', 500_011],
    ['an unknown grant', { grant_type: 'password' }, 400, 'unsupported_grant_type', 70_003],
  ])('%s is refused', (_, changed, status, error, number) => {
    const answer = engineOf().token({ ...CREDENTIALS, ...changed })
    expect(answer).toMatchObject({ status, error, error_codes: [number] })
    expect(answer['error_description']).toMatch(new RegExp(`^AADSTS${number}: `))
  })

  test('no secret, no grant type and another tenant are refused', () => {
    const { token, post } = engineOf()
    const { client_secret: _, ...bare } = CREDENTIALS
    expect(token(bare)).toMatchObject({ status: 401, error: 'invalid_client', error_codes: [7_000_218] })
    expect(token({})).toMatchObject({ status: 400, error: 'invalid_request', error_codes: [900_144] })
    expect(post('/fabrikam.example/oauth2/v2.0/token', CREDENTIALS)).toMatchObject({ error: 'invalid_request', error_codes: [90_002] })
  })
})

describe('a certificate in place of a secret', () => {
  const x5t = (hash: string) => createHash(hash).update(new X509Certificate(CLIENT_CERTIFICATE).raw).digest('base64url')

  async function assertion(changed: JWTPayload = {}, header: Record<string, string> = { alg: 'PS256', 'x5t#S256': x5t('sha256') }) {
    const seconds = START / 1000
    const payload = { aud: TOKEN_URL, iss: 'app', sub: 'app', jti: '1', nbf: seconds, exp: seconds + 300, ...changed }
    return new SignJWT(payload)
      .setProtectedHeader({ alg: 'PS256', typ: 'JWT', ...header })
      .sign(await importPKCS8(CLIENT_KEY, header['alg'] ?? 'PS256'))
  }
  const form = async (text: Promise<string>) => ({
    grant_type: 'client_credentials',
    client_id: 'app',
    scope: `${EXCHANGE}/.default`,
    client_assertion_type: ASSERTION_TYPE,
    client_assertion: await text,
  })

  test('PS256 with x5t#S256, and RS256 with x5t, are accepted once', async () => {
    const { token } = engineOf()
    expect(token(await form(assertion()))).toMatchObject({ status: 200 })
    expect(token(await form(assertion()))).toMatchObject({ status: 401, error: 'invalid_client', error_codes: [50_027] })
    expect(token(await form(assertion({ jti: '2' }, { alg: 'RS256', x5t: x5t('sha1') })))).toMatchObject({ status: 200 })
  })

  test.each<[string, JWTPayload, number]>([
    ['another audience', { aud: 'https://login.microsoftonline.com/common/oauth2/v2.0/token' }, 700_023],
    ['another issuer', { iss: 'other' }, 50_027],
    ['another subject', { sub: 'other' }, 50_027],
    ['no identifier', { jti: '' }, 50_027],
    ['an end in the past', { nbf: START / 1000 - 600, exp: START / 1000 - 1 }, 700_024],
    ['a begin in the future', { nbf: START / 1000 + 600, exp: START / 1000 + 900 }, 700_024],
    ['a lifetime of an hour', { exp: START / 1000 + 3600 }, 700_024],
  ])('an assertion with %s is refused', async (_, changed, number) => {
    expect(engineOf().token(await form(assertion(changed)))).toMatchObject({ status: 401, error: 'invalid_client', error_codes: [number] })
  })

  test('another thumbprint, another signature and text that is no token are refused', async () => {
    const { token } = engineOf()
    const wrong = { status: 401, error: 'invalid_client', error_codes: [700_027] }
    expect(token(await form(assertion({}, { alg: 'PS256', 'x5t#S256': 'AAAA' })))).toMatchObject(wrong)
    const good = await assertion()
    expect(token(await form(Promise.resolve(`${good.slice(0, -8)}AAAAAAAA`)))).toMatchObject(wrong)
    expect(token(await form(Promise.resolve('a.b.c')))).toMatchObject({ error_codes: [50_027] })
  })
})

describe('refresh tokens', () => {
  const login = { client: 'phone', user: 'app@contoso.example', refreshToken: 'first' }
  const refresh = (text: unknown) => ({ grant_type: 'refresh_token', client_id: 'phone', refresh_token: String(text) })

  test('without rotation an answer has a token of the person, and no refresh token', async () => {
    const { token, claims } = engineOf({ logins: [login] })
    const answer = token(refresh('first'))
    expect(answer).not.toHaveProperty('refresh_token')
    expect(await claims(answer['access_token'])).toMatchObject({
      aud: 'https://outlook.office.com',
      scp: 'SMTP.Send',
      upn: login.user,
      appid: 'phone',
    })
    expect(token(refresh('first'))).toMatchObject({ status: 200 })
  })

  test('with rotation the old token is valid until the new one is used; then it revokes the login', () => {
    const { token } = engineOf({ logins: [login], rotates: true })
    const { refresh_token: second } = token(refresh('first'))
    expect(second).toEqual(expect.any(String))
    expect(token(refresh('first'))).toMatchObject({ status: 200 })
    const { refresh_token: third } = token(refresh(second))
    expect(token(refresh(third))).toMatchObject({ status: 200 })
    expect(token(refresh('first'))).toMatchObject({ status: 400, error: 'invalid_grant', error_codes: [50_173] })
    expect(token(refresh(third))).toMatchObject({ error: 'invalid_grant', error_codes: [50_173] })
  })

  test('with strict rotation each token is valid once', () => {
    const { token } = engineOf({ logins: [login], rotates: 'strict' })
    const { refresh_token: second } = token(refresh('first'))
    expect(token(refresh('first'))).toMatchObject({ error_codes: [50_173] })
    expect(token(refresh(second))).toMatchObject({ error_codes: [50_173] })
  })

  test('a token ends without use for its lifetime, and is not that of another client', () => {
    const { token } = engineOf({ logins: [login], refreshLifetime: '1h' })
    expect(token(refresh('first'), 3000)).toMatchObject({ status: 200 })
    expect(token(refresh('first'), 6000)).toMatchObject({ status: 200 })
    expect(token(refresh('first'), 9601)).toMatchObject({ status: 400, error: 'invalid_grant', error_codes: [700_082] })
    expect(token({ ...refresh('first'), client_id: 'app', client_secret: 's3cret' }, 1)).toMatchObject({ error: 'invalid_grant' })
  })

  test('without consent the authority names it', () => {
    const { token } = engineOf({ clients: { phone: { scopes: [] } }, logins: [login] })
    expect(token(refresh('first'))).toMatchObject({ status: 400, error: 'invalid_grant', error_codes: [65_001] })
  })
})

describe('device codes', () => {
  const SCOPE = 'https://outlook.office.com/SMTP.Send offline_access'
  const poll = (begun: Record<string, unknown>) => ({
    grant_type: DEVICE_GRANT,
    client_id: 'phone',
    device_code: String(begun['device_code']),
  })

  test('are pending until a person approves them, and too many polls are slowed down by 5 s', async () => {
    const { engine, device, token, claims } = engineOf()
    const begun = device({ client_id: 'phone', scope: SCOPE })
    expect(begun).toMatchObject({
      user_code: expect.stringMatching(/^[B-Z]{4}-[B-Z]{4}$/),
      verification_uri: 'https://login.microsoftonline.com/devicelogin',
      expires_in: 900,
      interval: 5,
    })
    expect(token(poll(begun), 5)).toMatchObject({ status: 400, error: 'authorization_pending' })
    expect(token(poll(begun), 9)).toMatchObject({ status: 400, error: 'slow_down' })
    expect(token(poll(begun), 15)).toMatchObject({ error: 'slow_down' })
    expect(token(poll(begun), 30)).toMatchObject({ error: 'authorization_pending' })
    expect(engine.endpoint.devices.decide(String(begun['user_code']).toLowerCase(), 'app@contoso.example', START)).toBe(true)
    const answer = token(poll(begun), 45)
    expect(await claims(answer['access_token'], 45)).toMatchObject({ upn: 'app@contoso.example', scp: 'SMTP.Send' })
    expect(token({ grant_type: 'refresh_token', client_id: 'phone', refresh_token: String(answer['refresh_token']) }, 50)).toMatchObject({
      status: 200,
    })
    expect(token(poll(begun), 60)).toMatchObject({ error: 'bad_verification_code' })
  })

  test('end when they are denied, and by time', () => {
    const { engine, device, token } = engineOf()
    const denied = device({ client_id: 'phone', scope: SCOPE })
    engine.endpoint.devices.decide(String(denied['user_code']), null, START)
    expect(token(poll(denied), 5)).toMatchObject({ status: 400, error: 'authorization_declined' })
    const late = device({ client_id: 'phone', scope: SCOPE })
    expect(token(poll(late), 900)).toMatchObject({ status: 400, error: 'expired_token' })
    expect(engine.endpoint.devices.decide(String(late['user_code']), 'app@contoso.example', START + 900_000)).toBe(false)
  })

  test('are decided on the page', () => {
    const { engine, device, token } = engineOf()
    const begun = device({ client_id: 'phone', scope: SCOPE })
    const visit = (body: string) =>
      engine.answer({ method: body === '' ? 'GET' : 'POST', path: '/devicelogin', type: '', body }, START, 0).answer
    expect(visit('')?.body).toContain('<form method="post">')
    expect(visit('code=NONE&user=app@contoso.example&verdict=approve')?.status).toBe(400)
    expect(visit(`code=${String(begun['user_code'])}&user=app@contoso.example&verdict=approve`)).toMatchObject({ status: 200 })
    expect(token(poll(begun), 5)).toMatchObject({ status: 200 })
  })
})

describe('Google', () => {
  const ACCOUNT = 'relay@project.iam.gserviceaccount.com'
  const GMAIL = 'https://mail.google.com/'
  const google = (client = {}) =>
    engineOf({
      provider: 'google',
      clients: { [ACCOUNT]: { publicKey: PUBLIC_KEY, delegates: ['app@example.com'], ...client }, desktop: { secret: 'x' } },
      logins: [{ client: 'desktop', user: 'app@example.com', refreshToken: 'first' }],
    })
  const signed = async (changed: JWTPayload = {}) =>
    new SignJWT({
      iss: ACCOUNT,
      sub: 'app@example.com',
      scope: GMAIL,
      aud: 'https://oauth2.googleapis.com/token',
      iat: START / 1000,
      exp: START / 1000 + 3600,
      ...changed,
    })
      .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
      .sign(await importPKCS8(CLIENT_KEY, 'RS256'))

  test('a service account gets a token for a mailbox', async () => {
    const { token, claims } = google()
    const answer = token({ grant_type: JWT_GRANT, assertion: await signed() })
    expect(answer).toMatchObject({ status: 200, expires_in: 3600, scope: GMAIL })
    expect(await claims(answer['access_token'])).toMatchObject({ email: 'app@example.com', azp: ACCOUNT, scope: GMAIL })
  })

  test.each<[string, JWTPayload, number, string]>([
    ['a mailbox that is not delegated', { sub: 'bob@example.com' }, 401, 'unauthorized_client'],
    ['a scope that is not delegated', { scope: 'https://www.googleapis.com/auth/gmail.imap_admin' }, 401, 'unauthorized_client'],
    ['another audience', { aud: 'https://example.com/token' }, 400, 'invalid_grant'],
    ['a lifetime of two hours', { exp: START / 1000 + 7200 }, 400, 'invalid_grant'],
    ['another issuer', { iss: 'desktop' }, 401, 'invalid_client'],
  ])('%s is refused', async (_, changed, status, error) => {
    expect(google().token({ grant_type: JWT_GRANT, assertion: await signed(changed) })).toMatchObject({ status, error })
  })

  test('a refresh has the texts of Google, and its device endpoint the name verification_url', () => {
    const { token, device } = google()
    const form = { grant_type: 'refresh_token', client_id: 'desktop', client_secret: 'x' }
    expect(token({ ...form, refresh_token: 'first' })).toMatchObject({ status: 200, scope: GMAIL })
    expect(token({ ...form, refresh_token: 'other' })).toEqual({ status: 400, error: 'invalid_grant', error_description: 'Bad Request' })
    expect(device({ client_id: 'desktop', scope: GMAIL })).toMatchObject({ verification_url: 'https://oauth2.googleapis.com/device' })
  })
})

describe('scripted failures', () => {
  test('each has its answer', async () => {
    const answers = Object.fromEntries(
      FAILURE_NAMES.map((fails) => {
        const { answer, closes } = engineOf({}, [{ name: 'script', fails }]).raw(CREDENTIALS)
        const code = (JSON.parse(answer?.type.includes('json') === true ? answer.body : '{}') as { error_codes?: number[] })
          .error_codes?.[0]
        return [fails, [answer?.status ?? (closes ? 'closed' : 'silent'), code ?? answer?.headers?.['retry-after'] ?? '']]
      }),
    )
    expect(answers).toEqual({
      invalid_client: [401, 7_000_215],
      expired_secret: [401, 7_000_222],
      invalid_grant: [400, 700_082],
      invalid_scope: [400, 70_011],
      unauthorized_client: [400, 700_016],
      no_consent: [400, 65_001],
      server_error: [500, ''],
      unavailable: [503, '120'],
      throttled: [429, '60'],
      garbage: [200, ''],
      oversized: [200, ''],
      wrong_audience: [200, ''],
      no_roles: [200, ''],
      no_lifetime: [200, ''],
      closed: ['closed', ''],
      silent: ['silent', ''],
      // Refused connections have no requests.
      down: [200, ''],
    })
    expect(FAILURES.oversized.body.length).toBeGreaterThan(64 * 1024)
    const wrong = engineOf({}, [{ name: 'script', fails: 'wrong_audience' }])
    expect(await wrong.claims(wrong.token(CREDENTIALS)['access_token'])).toMatchObject({ aud: 'https://graph.microsoft.com' })
    const bare = engineOf({}, [{ name: 'script', fails: 'no_roles' }])
    expect(await bare.claims(bare.token(CREDENTIALS)['access_token'])).not.toHaveProperty('roles')
    expect(engineOf({}, [{ name: 'script', fails: 'no_lifetime' }]).token(CREDENTIALS)).toMatchObject({ expires_in: 0 })
  })

  test('act on the first requests, in a time, and on a grant or a client only', () => {
    const first = engineOf({}, [
      { name: 'once', fails: 'server_error', first: 1, grant: 'client_credentials', from: 10_000, until: 20_000 },
    ])
    expect(first.token(CREDENTIALS, 9)['status']).toBe(200)
    expect(first.token({ ...CREDENTIALS, grant_type: 'other' }, 12)['status']).toBe(400)
    expect(first.raw(CREDENTIALS, 13).request).toMatchObject({ status: 500, error: 'server_error', rule: 'once', client: 'app' })
    expect(first.token(CREDENTIALS, 14)['status']).toBe(200)
    expect(engineOf({}, [{ name: 'one', delay: 3000, client: 'app' }]).raw(CREDENTIALS)).toMatchObject({
      delay: 3000,
      answer: { status: 200 },
    })
  })
})
