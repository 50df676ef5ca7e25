/** Access tokens of an authority in a world: how often it is asked, and what becomes of mail while it is away, slow or wrong. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { afterAll, expect, test } from 'vitest'
import { createWorld, WORLD_CA, type Authority, type AuthorityOptions, type World, type WorldConfig } from '../../src/testkit/index.ts'
import { oauthClient } from '../support/oauth-clients.ts'

const folder = mkdtempSync(join(tmpdir(), 'access-tokens-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const HOP = 'smtp.office365.com'
const SECRET = 'an-app-secret'
const file = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text, { mode: 0o600 })
  return path
}

interface Site {
  readonly world: World
  readonly authority: Authority
  /** Texts of the log. */
  readonly notes: readonly string[]
}

async function site(options: Partial<AuthorityOptions> = {}, parameters: WorldConfig = {}, secret = SECRET): Promise<Site> {
  const table = { provider: 'microsoft', tenant: 'contoso.example', grant: 'client_credentials', client_id: 'app' }
  const config = {
    relayhost: `[${HOP}]:587`,
    smtp_tls_security_level: 'encrypt',
    smtp_sasl_password_maps: file('passwords', `[${HOP}]:587 app@contoso.example:\n`),
    smtp_sasl_oauth: 'm365',
    oauth: { m365: { ...table, client_secret_file: file('secret', `${secret}\n`) } },
    ...parameters,
  }
  const world = await createWorld({ config })
  const authority = world.authority({ clients: { app: { secret: SECRET } }, ...options }).protects(HOP)
  const notes: string[] = []
  world.relayEvents.listen((event) => {
    if (event.kind === 'oauth-failed') notes.push(event.text)
  })
  return { world, authority, notes }
}

const send = (world: World, to: string | readonly string[]): Promise<unknown> =>
  createTransport(world.transport()).sendMail({ from: 'app@contoso.example', to: [to].flat(), text: 'hi' })

const addresses = (count: number): readonly string[] => Array.from({ length: count }, (_, n) => `to${n}@far.example`)

/** Outcomes of all attempts, as words. */
const outcomes = (world: World, to: readonly string[]): ReadonlySet<string> =>
  new Set(to.flatMap((address) => world.attempts(address).map(({ outcome }) => outcome)))

const arrived = (world: World, to: readonly string[]): number => to.filter((address) => world.mailbox(address).mails().length === 1).length

test('200 deliveries with an empty cache make one request, though the authority is slow', async () => {
  const { world, authority } = await site({}, { default_destination_recipient_limit: 1 })
  await using _ = world
  authority.isSlow('5s')
  const to = addresses(200)
  for (let n = 0; n < 4; n++) await send(world, to.slice(50 * n, 50 * (n + 1)))
  await world.advance('10m')
  expect(arrived(world, to)).toBe(200)
  expect(authority.requests()).toHaveLength(1)
})

test('with a lifetime of a minute, no delivery of an hour waits for a renewal', async () => {
  const { world, authority } = await site({ lifetime: '1m' })
  await using _ = world
  const to = addresses(30)
  await send(world, 'first@far.example')
  await world.advance('1s')
  authority.isSlow('4s')
  for (const address of to) {
    await send(world, address)
    await world.advance('2s')
    expect(arrived(world, [address])).toBe(1)
    await world.advance('118s')
  }
  expect([...outcomes(world, to)]).toEqual(['delivered'])
  // A renewal after 24 s, which takes up to 4 s.
  expect(authority.requests().length).toBeGreaterThan(120)
  expect(authority.requests().length).toBeLessThan(160)
})

test('while the authority is away for 30 minutes, mail goes on with the old token, then waits, and all of it leaves', async () => {
  const { world, authority, notes } = await site({ lifetime: '20m' })
  await using _ = world
  await send(world, 'first@far.example')
  await world.advance('1m')
  authority.isDownFor('30m')
  const to = addresses(29)
  for (const address of to) {
    await send(world, address)
    await world.advance('1m')
  }
  // Until 30 s before its end, the token of the first minute is used.
  expect(arrived(world, to)).toBe(19)
  const waiting = world.attempts('to19@far.example')
  expect(waiting[0]).toMatchObject({ outcome: 'deferred', status: '4.7.0' })
  expect(waiting[0]?.reason).toMatch(
    /no access token: oauth\.m365: login\.microsoftonline\.com: .+: it is asked again; if this lasts, check the network/,
  )
  await world.advance('2h')
  expect(arrived(world, to)).toBe(29)
  expect([...outcomes(world, to)].toSorted()).toEqual(['deferred', 'delivered'])
  expect(notes.length).toBeGreaterThan(3)
})

/** Failures before the request, or without an answer, which the authority does not count. */
const UNCOUNTED: ReadonlySet<string> = new Set(['down', 'closed', 'silent'])

test.each([
  ['invalid_client', 'invalid_client (AADSTS7000215): write the value of the client secret, not its id, to'],
  ['expired_secret', 'invalid_client (AADSTS7000222): the client secret has expired: create a new one'],
  ['unauthorized_client', 'unauthorized_client (AADSTS700016): no application with this client_id'],
  ['invalid_scope', 'invalid_scope (AADSTS70011): correct scope'],
  ['server_error', 'it is asked again'],
  ['throttled', 'it is asked again'],
  ['invalid_grant', 'invalid_grant (AADSTS700082): '],
  ['no_consent', 'invalid_grant (AADSTS65001): '],
  ['unavailable', 'it is asked again'],
  ['down', 'it is asked again'],
  ['no_lifetime', 'status 200 with a token that has ended (expires_in): it is asked again'],
  ['garbage', 'status 200 without a token: it is asked again'],
  ['oversized', 'its answer is larger than 65536 bytes: it is asked again'],
  ['closed', 'it is asked again'],
  ['silent', 'no answer within 30 s: it is asked again'],
] as const)(
  '%s of the authority: mail waits with a sentence, the authority is asked seldom, nothing bounces',
  async (failure, sentence) => {
    const { world, authority, notes } = await site()
    await using _ = world
    authority.fails(failure, { for: '30m' })
    await send(world, 'ann@far.example')
    await world.advance('29m')
    const [first] = world.attempts('ann@far.example')
    expect(first).toMatchObject({ outcome: 'deferred', status: '4.7.0', stage: 'auth' })
    expect(first?.reason).toContain(`no access token: oauth.m365: `)
    expect(first?.reason).toContain(sentence)
    // 5 s, doubled to 5 minutes; after a refusal every 15 minutes.
    const isRefusal = sentence.includes('AADSTS')
    if (!UNCOUNTED.has(failure)) expect(authority.requests().length).toBe(isRefusal ? 2 : 11)
    await world.advance('3h')
    expect(arrived(world, ['ann@far.example'])).toBe(1)
    expect([...outcomes(world, ['ann@far.example'])].toSorted()).toEqual(['deferred', 'delivered'])
    const shown = JSON.stringify([notes, world.history().trace, world.attempts('ann@far.example')])
    for (const secret of authority.secrets()) expect(shown).not.toContain(secret)
  },
)

test('tokens for another audience: the server refuses them, mail waits, and the authority is asked once in five minutes', async () => {
  const { world, authority } = await site()
  await using _ = world
  authority.fails('wrong_audience', { for: '30m' })
  await send(world, 'ann@far.example')
  await world.advance('29m')
  expect(world.attempts('ann@far.example')[0]).toMatchObject({ outcome: 'deferred', status: '4.7.3', stage: 'auth' })
  // The first token, and one in place of it at each attempt that is not within 5 minutes of the last.
  expect(authority.requests().length).toBeLessThanOrEqual(1 + world.attempts('ann@far.example').length)
  await world.advance('3h')
  expect(arrived(world, ['ann@far.example'])).toBe(1)
  expect([...outcomes(world, ['ann@far.example'])].toSorted()).toEqual(['deferred', 'delivered'])
})

test('an authority that answers in 20 s gives a token to all mail that waits, and nothing bounces', async () => {
  const { world, authority } = await site()
  await using _ = world
  authority.isSlow('20s')
  const to = addresses(5)
  for (const address of to) await send(world, address)
  await world.advance('1m')
  expect(arrived(world, to)).toBe(5)
  expect([...outcomes(world, to)]).toEqual(['delivered'])
  expect(authority.requests()).toHaveLength(1)
})

test('a wrong secret is asked about every 15 minutes; a reload with the right one lets the mail leave at its next attempt', async () => {
  const { world, authority } = await site({}, {}, 'wrong-secret')
  await using _ = world
  await send(world, 'ann@far.example')
  await world.advance('10m')
  expect(authority.requests()).toHaveLength(1)
  const clients = new Map(
    [...world.relay.config.oauth].map(([name, table]) => [
      name,
      oauthClient(table, { ca: WORLD_CA, proof: { kind: 'secret', secret: SECRET } }),
    ]),
  )
  world.relay.accessTokens.configure(clients)
  await world.advance('3h')
  expect(arrived(world, ['ann@far.example'])).toBe(1)
  expect(
    authority
      .requests()
      .map(({ form }) => form['client_secret'])
      .slice(0, 2),
  ).toEqual(['wrong-secret', SECRET])
})
