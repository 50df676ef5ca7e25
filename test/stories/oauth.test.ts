/** The display of access tokens to operators and programs: status, attention, API, page, events, log and metrics. No secret is in any of it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { afterAll, expect, test } from 'vitest'
import { statusScreen } from '../../src/cli/render/status-screen.ts'
import { attentionJson } from '../../src/resources/status-json.ts'
import { statusJson } from '../../src/resources/status-json.ts'
import { mergedStatus, readStatus } from '../../src/queue/queue-status.ts'
import { EMPTY_TALLY } from '../../src/store/counts/queue-tally.ts'
import { HOUR, MINUTE } from '../../src/system/clock.ts'
import { openLog } from '../../src/telemetry/log.ts'
import { openMetrics } from '../../src/telemetry/metrics/metrics.ts'
import { createWorld, WORLD_CA, type Authority, type AuthorityOptions, type World } from '../../src/testkit/index.ts'
import { attentionIn } from '../support/attention.ts'
import { oauthClient } from '../support/oauth-clients.ts'

const folder = mkdtempSync(join(tmpdir(), 'oauth-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const HOP = 'smtp.office365.com'
const SECRET = 'an-app-secret'
const file = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text, { mode: 0o600 })
  return path
}
const PLAIN = { width: 100, coloured: false }

class Site {
  readonly world: World
  readonly authority: Authority
  /** Lines of the log in both formats. */
  log = ''
  readonly #metrics

  private constructor(world: World, authority: Authority) {
    this.world = world
    this.authority = authority
    const { clock, relay } = world
    for (const format of ['postfix', 'json'] as const) {
      const write = (text: string): void => void (this.log += text)
      world.relayEvents.listen(openLog({ format, syslogName: 'deferd', host: 'relay', pid: 42, clock, write }).listen)
    }
    this.#metrics = openMetrics({
      clock,
      tally: async () => EMPTY_TALLY,
      destinations: () => [],
      tokens: () => relay.accessTokens.states(),
    })
    world.relayEvents.listen(this.#metrics.listen)
  }

  static async open(options: Partial<AuthorityOptions> = {}): Promise<Site> {
    const table = { provider: 'microsoft', tenant: 'contoso.example', grant: 'client_credentials', client_id: 'app' }
    const config = {
      relayhost: `[${HOP}]:587`,
      smtp_tls_security_level: 'encrypt',
      smtp_sasl_password_maps: file('passwords', `[${HOP}]:587 app@contoso.example:\n`),
      smtp_sasl_oauth: 'm365',
      oauth: { m365: { ...table, client_secret_file: file('secret', `${SECRET}\n`) } },
    }
    const world = await createWorld({ config })
    return new Site(world, world.authority({ clients: { app: { secret: SECRET } }, ...options }).protects(HOP))
  }

  send(to = 'ann@far.example'): Promise<unknown> {
    return createTransport(this.world.transport()).sendMail({ from: 'app@contoso.example', to, text: 'hi' })
  }

  async status() {
    return readStatus({ reader: this.world.reader, clock: this.world.clock, schedules: new Map() }, await this.world.relay.status.all())
  }

  async screen(): Promise<string> {
    const status = statusJson(await this.status(), this.world.clock.wall)
    return statusScreen(status, { name: 'relay', clock: this.world.clock, display: PLAIN, rows: null, nodes: [] }).replaceAll(/\s+/g, ' ')
  }

  async oauth() {
    return statusJson(await this.status(), this.world.clock.wall).oauth
  }

  async attention() {
    const items = attentionJson(await attentionIn(this.world), this.world.clock.wall)
    return items.filter(({ kind }) => kind === 'oauth-failed')
  }

  failures() {
    return this.world.events({ types: ['oauth.failed'] })
  }

  async metrics(): Promise<readonly string[]> {
    return (await this.#metrics.render()).split('\n').filter((line) => line.startsWith('deferd_oauth'))
  }

  /** Everything that was shown, as one text. */
  async shown(): Promise<string> {
    const { world } = this
    const parts = [
      await world.events(),
      world.history().trace,
      await this.oauth(),
      await this.attention(),
      world.relay.accessTokens.states(),
      world.attempts('ann@far.example'),
    ]
    return [this.log, await this.screen(), ...(await this.metrics()), ...parts.map((part) => JSON.stringify(part))].join('\n')
  }
}

test('a token is shown with the time that is left of it', async () => {
  const site = await Site.open()
  await using _ = site.world
  expect(await site.oauth()).toEqual([])
  await site.send()
  await site.world.advance('18m')
  expect(await site.screen()).toContain('ACCESS TOKENS token of m365 for 42m')
  expect(await site.oauth()).toEqual([{ oauth: 'm365', user: null, left: 2520, problem: null, failing: false }])
  expect(await site.metrics()).toEqual([
    'deferd_oauth_requests_total{oauth="m365",result="token"} 1',
    'deferd_oauth_requests_total{oauth="m365",result="temporary"} 0',
    'deferd_oauth_requests_total{oauth="m365",result="refused"} 0',
    'deferd_oauth_token_seconds{oauth="m365"} 2520',
  ])
  expect(site.log).toContain('deferd/smtp[42]: oauth=m365: access token for 3600 s')
  expect(site.log).toContain('"event":"oauth-token","oauth":"m365","user":null,"lifetime":3600')
  expect([await site.attention(), await site.failures()]).toEqual([[], []])
  expect(site.authority.secrets().filter((secret) => secret.length > 20).length).toBe(1)
  const shown = await site.shown()
  for (const secret of site.authority.secrets()) expect(shown).not.toContain(secret)
})

test('a refusal is one event and one condition until a token comes, however often the authority is asked, also after a reload', async () => {
  const site = await Site.open()
  await using _ = site.world
  site.authority.fails('invalid_client')
  await site.send()
  await site.world.advance('3h')
  expect(site.authority.requests().length).toBeGreaterThan(5)
  const problem = `invalid_client (AADSTS7000215): write the value of the client secret, not its id, to ${folder}/secret, and reload`
  expect((await site.failures()).map(({ data }) => data)).toEqual([{ oauth: 'm365', user: null, result: 'refused', text: problem }])
  expect(await site.attention()).toMatchObject([{ kind: 'oauth-failed', count: 1, text: `m365: ${problem}` }])
  expect(await site.oauth()).toEqual([{ oauth: 'm365', user: null, left: null, problem, failing: true }])
  expect(await site.screen()).toContain(`no token of m365: ${problem}`)
  expect(await site.metrics()).toContain('deferd_oauth_token_seconds{oauth="m365"} 0')
  expect(site.log).toContain(`deferd/smtp[42]: warning: oauth=m365: no access token: ${problem}`)
  const clients = [...site.world.relay.config.oauth].map(
    ([name, table]) => [name, oauthClient(table, { ca: WORLD_CA, proof: { kind: 'secret', secret: 'another-secret' } })] as const,
  )
  site.world.relay.accessTokens.configure(new Map(clients))
  await site.world.advance('2h')
  expect(site.authority.requests().at(-1)?.form['client_secret']).toBe('another-secret')
  expect(await site.failures()).toHaveLength(1)
  expect(await site.attention()).toHaveLength(1)
  const shown = await site.shown()
  for (const secret of site.authority.secrets()) expect(shown).not.toContain(secret)
})

test('after a token, the next failure is another event', async () => {
  const site = await Site.open({ lifetime: '20m' })
  await using _ = site.world
  for (let n = 1; n <= 2; n++) {
    site.authority.fails('invalid_client')
    await site.send()
    await site.world.advance('1h')
    expect(await site.failures()).toHaveLength(n)
    expect(await site.attention()).toHaveLength(1)
    site.authority.recovers()
    await site.send()
    await site.world.advance('2h')
    expect(await site.attention()).toEqual([])
    expect((await site.oauth())[0]?.problem).toBeNull()
  }
})

test('an authority that is away is a condition from the end of the token on, not before', async () => {
  const site = await Site.open()
  await using _ = site.world
  await site.send()
  await site.world.advance('10m')
  site.authority.isDownFor('90m')
  await site.world.advance('45m')
  expect(await site.oauth()).toMatchObject([{ left: 300, problem: expect.stringContaining('it is asked again') as string }])
  expect(await site.screen()).toMatch(/token of m365 for 5m: login\.microsoftonline\.com: /)
  expect([await site.attention(), await site.failures()]).toEqual([[], []])
  await site.world.advance('20m')
  expect(await site.attention()).toHaveLength(1)
  expect((await site.failures()).map(({ data }) => data)).toMatchObject([{ oauth: 'm365', result: 'temporary' }])
  await site.world.advance('3h')
  expect(await site.attention()).toEqual([])
  expect(await site.failures()).toHaveLength(1)
})

test('a token that is not used for a day is neither renewed nor shown', async () => {
  const site = await Site.open()
  await using _ = site.world
  await site.send()
  await site.world.advance('30h')
  expect(await site.oauth()).toEqual([])
  expect((await site.metrics()).filter((line) => line.startsWith('deferd_oauth_token_seconds'))).toEqual([])
})

test('of several nodes, the state of a login that needs attention is shown, else the token that ends first', async () => {
  const site = await Site.open()
  await using _ = site.world
  const live = await site.world.relay.status.all()
  const state = { name: 'm365', user: '', left: HOUR, problem: null, failedSince: null }
  const failed = { ...state, left: 2 * HOUR, problem: 'invalid_client: correct it', failedSince: 5 }
  const shown = (...tokens: (typeof state | typeof failed)[]) => mergedStatus(tokens.map((one) => ({ ...live, tokens: [one] })))?.tokens
  expect(shown(state, { ...state, left: MINUTE }, { ...state, left: 2 * HOUR })).toEqual([{ ...state, left: MINUTE }])
  expect(shown({ ...state, left: MINUTE }, failed)).toEqual([failed])
  const { tokens: _tokens, ...earlier } = live
  expect(mergedStatus([earlier, { ...live, tokens: [state] }])?.tokens).toEqual([state])
})
