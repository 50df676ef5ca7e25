/** Access tokens of a daemon in a process of its own: their display, secrets, reloads, and kills while a refresh token is renewed. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PageClient, textOf, type PageScreen } from '../support/page-client.ts'
import type { StartedProcess } from '../support/started-daemon.ts'
import { filesIn, leaks, type Shown } from '../support/secret-search.ts'
import { killedRenewals } from '../support/killed-renewals.ts'
import { terminated, TokenSite } from '../support/token-site.ts'

const SECRET = 'kX7~the-secret-of-the-app'
const APP = { grant: 'client_credentials', client_id: 'app' }

async function siteWithSecret(secret = SECRET): Promise<TokenSite> {
  const site = await TokenSite.open({ clients: { app: { secret: SECRET } } })
  const events = { archive: { to: `file:${join(site.folder.path, 'events.jsonl')}` } }
  site.configure({ ...APP, client_secret_file: site.write('m365.secret', `${secret}\n`) }, { events })
  return site
}

const page = (site: TokenSite): Promise<PageClient> => PageClient.logIn(`http://127.0.0.1:${site.ports.page}/`, site.queueDirectory)

async function metrics(site: TokenSite): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${site.ports.metrics}/metrics`)
  return response.text()
}

/** All screens to which links lead, by their places. */
async function screensOf(client: PageClient): Promise<Shown> {
  const screens = new Map<string, string>()
  const open = ['']
  for (let place = open.shift(); place !== undefined; place = open.shift()) {
    if (screens.has(place)) continue
    const screen = await client.open(place)
    expect([place, screen.status]).toEqual([place, 200])
    screens.set(place, screen.markup)
    open.push(...linksOf(screen))
  }
  return screens
}

/** Places of the links of a screen, without those that sort or filter a list. */
const linksOf = ({ markup, place }: PageScreen): readonly string[] =>
  [...markup.matchAll(/<a\b[^>]*\shref="([^"#?]*)"/g)].flatMap(([, href = '']) => {
    const url = new URL(href, new URL(place, 'http://page/'))
    return url.host === 'page' && !url.pathname.startsWith('/api/') ? [url.pathname.slice(1)] : []
  })

/** Paths of the API that need no parameter, below `api/v1/`. */
async function readPaths(client: PageClient): Promise<readonly string[]> {
  const { paths } = (await client.json('openapi.json')) as { readonly paths: Readonly<Record<string, object>> }
  return Object.keys(paths).flatMap((path) =>
    'get' in (paths[path] ?? {}) && !/\{|\/stream$/.test(path) ? [path.replace(/^.*\/v1\//, '')] : [],
  )
}

/** Everything that the daemon and the commands show, as texts by their origin. */
async function everythingShown(site: TokenSite, daemon: StartedProcess): Promise<Shown> {
  const shown = new Map<string, string>()
  const client = await page(site)
  for (const [place, markup] of await screensOf(client)) shown.set(`page ${place}`, markup)
  for (const path of await readPaths(client)) shown.set(`api ${path}`, JSON.stringify(await client.json(path)))
  shown.set('metrics', await metrics(site))
  for (const command of [
    ['status'],
    ['status', '--json'],
    ['config'],
    ['config', '--json'],
    ['check', '--connect'],
    ['queue', 'list', '--json'],
    ['history', 'list', '--json'],
    ['audit', '--json'],
    ['destination', 'list', '--json'],
  ]) {
    const { out, err } = await site.command(...command)
    shown.set(`deferd ${command.join(' ')}`, out + err)
  }
  shown.set('events', site.read('events.jsonl'))
  shown.set('log', daemon.out + daemon.err)
  shown.set('sink', JSON.stringify(site.printed))
  return shown
}

test('status, page, API, metrics and log show the token, and nothing that is shown or stored has a secret', async () => {
  await using site = await siteWithSecret()
  const daemon = await site.start()
  await site.send()
  await expect.poll(() => site.arrived.size).toBe(1)
  site.authority.fails('wrong_audience')
  const shown = await everythingShown(site, daemon)
  expect(shown.get('deferd status')).toMatch(/ACCESS TOKENS\ntoken of m365 for (?:59m|1h)/)
  expect(JSON.parse(shown.get('api now') ?? '')).toMatchObject({ oauth: [{ oauth: 'm365', user: null, problem: null }] })
  expect(shown.get('metrics')).toMatch(/^deferd_oauth_requests_total\{oauth="m365",result="token"\} 1$/m)
  expect(shown.get('metrics')).toMatch(/^deferd_oauth_token_seconds\{oauth="m365"\} 3[56]\d\d(\.\d+)?$/m)
  expect(shown.get('log')).toMatch(/deferd\/smtp\[\d+\]: oauth=m365: access token for 3600 s/)
  expect(shown.get('log')).toMatch(/to=<ann@far\.example>, relay=.*, oauth=m365, dsn=2\.0\.0, status=sent/)
  expect(shown.get('deferd check --connect')).toContain('ok')
  expect(site.authority.secrets().length).toBeGreaterThan(2)
  expect(leaks(shown, site.authority.secrets())).toEqual([])
  expect((await terminated(daemon)).code).toBe(0)
  await site.command('backup', join(site.folder.path, 'queue', 'backup.db'))
  expect(leaks(filesIn(site.queueDirectory), site.authority.secrets())).toEqual([])
})

test('a refused secret is one event and a condition for people; a new one is used at the next request after SIGHUP', async () => {
  const wrong = 'wR0ng~the-id-of-the-secret'
  await using site = await siteWithSecret(wrong)
  const daemon = await site.start()
  await site.send()
  await daemon.prints('oauth=m365: no access token: invalid_client (AADSTS7000215)')
  await daemon.prints('status=deferred')
  const client = await page(site)
  const sentence = `invalid_client (AADSTS7000215): write the value of the client secret, not its id, to ${join(site.folder.path, 'm365.secret')}`
  // After a start the queue is counted first.
  await expect
    .poll(async () => textOf(await client.open('')), { timeout: 20_000 })
    .toContain(`1 login at next hops without an access token: m365: ${sentence}`)
  expect(await client.json('now')).toMatchObject({
    attention: expect.arrayContaining([expect.objectContaining({ kind: 'oauth-failed', count: 1 })]) as unknown,
  })
  const shown = await everythingShown(site, daemon)
  expect(shown.get('deferd status')?.replaceAll(/\s+/g, ' ')).toContain('no token of m365: invalid_client (AADSTS7000215)')
  expect(shown.get('metrics')).toMatch(/^deferd_oauth_token_seconds\{oauth="m365"\} 0$/m)
  expect(shown.get('events')?.match(/"oauth\.failed".*AADSTS7000215/g)).toHaveLength(1)
  expect(leaks(shown, [wrong, SECRET])).toEqual([])
  expect(site.arrived.size).toBe(0)

  // A reload with a mistake, in the table or in the file, keeps the old configuration.
  const good = site.read('deferd.toml')
  site.write('deferd.toml', good.replace('client_credentials', 'client_credential'))
  daemon.child.kill('SIGHUP')
  await daemon.prints('client_credential')
  site.write('deferd.toml', good)
  site.write('m365.secret', `${SECRET}\n${SECRET}\n`)
  daemon.child.kill('SIGHUP')
  await daemon.prints('m365.secret has no secret')
  expect(site.authority.requests().every(({ form }) => form['client_secret'] === wrong)).toBe(true)
  expect(await client.json('now')).toMatchObject({ oauth: [{ oauth: 'm365', left: null }] })

  site.write('m365.secret', `${SECRET}\n`)
  daemon.child.kill('SIGHUP')
  await expect.poll(() => site.arrived.size).toBe(1)
  expect(site.authority.requests().at(-1)?.form['client_secret']).toBe(SECRET)
  const conditions = async () =>
    ((await client.json('now')) as { readonly attention: readonly { readonly kind: string }[] }).attention.map(({ kind }) => kind)
  await expect.poll(conditions).not.toContain('oauth-failed')
  const ended = await terminated(daemon)
  expect(leaks(new Map([['log', ended.out + ended.err]]), [wrong, SECRET, ...site.authority.secrets()])).toEqual([])
  expect(leaks(filesIn(site.queueDirectory), [wrong, SECRET, ...site.authority.secrets()])).toEqual([])
})

test('a start with unusable secrets ends with 78, and repeats none of them', async () => {
  await using site = await siteWithSecret()
  const table = { grant: 'client_credentials', client_id: 'app' }
  const mistakes: readonly Readonly<Record<string, unknown>>[] = [
    { ...table, client_secret_file: site.write('two-lines', `${SECRET}\n${SECRET}\n`) },
    { ...table, client_certificate_file: site.write('no.pem', `-----BEGIN PRIVATE KEY-----\n${SECRET}\n-----END PRIVATE KEY-----\n`) },
    { ...table, client_secret: SECRET },
    { ...table, client_secret_file: join(site.folder.path, 'm365.secret'), client_certificate_file: join(site.folder.path, 'no.pem') },
  ]
  for (const mistake of mistakes) {
    site.configure(mistake)
    for (const command of ['start', 'check', 'config']) {
      const { code, out, err } = await site.command(command)
      if (command === 'start') expect([code, err]).toEqual([78, expect.stringContaining('m365')])
      expect(out + err).not.toContain(SECRET)
    }
  }
})

test('5 daemons are killed between the answer of the authority and the use of the token: no login is lost', async () => {
  await killedRenewals({ kills: 5, seed: 2 })
})
