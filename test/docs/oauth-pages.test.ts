/**
 * The errors and replies that docs/microsoft-365.md and docs/google.md quote: deferd prints them as the pages have them, with the same cure, and
 * treats the mail as the pages say.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { parse } from 'smol-toml'
import { afterAll, expect, test } from 'vitest'
import { hintOf } from '../../src/mail/login-refusal.ts'
import { adviceFor } from '../../src/oauth/advice.ts'
import { tokenAnswer } from '../../src/oauth/token-answer.ts'
import { createWorld, type Attempt, type AuthorityFailure, type FaultStage, type World } from '../../src/testkit/index.ts'
import { blockWith } from '../support/fenced-blocks.ts'
import { oauthTable } from '../support/oauth-clients.ts'

const M365 = 'docs/microsoft-365.md'
const GOOGLE = 'docs/google.md'
const HOP = 'smtp.office365.com'

const folder = mkdtempSync(join(tmpdir(), 'deferd-oauth-pages-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const pageText = (page: string): string => readFileSync(join(import.meta.dirname, '../..', page), 'utf8')

/** Cells of the rows of the table with this first cell in its heading. */
function rowsOf(page: string, heading: string): readonly (readonly string[])[] {
  const rows = new RegExp(`^\\| ${heading} +\\|.*\\n\\|[ |-]*\\n((?:\\|.*\\n)+)`, 'm').exec(pageText(page))?.[1] ?? ''
  return rows
    .trimEnd()
    .split('\n')
    .map((row) =>
      row
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    )
}

const APPLICATION = { provider: 'microsoft', tenant: 'contoso.example', client_id: 'app' }
const TABLES = {
  secret: oauthTable({ ...APPLICATION, grant: 'client_credentials', client_secret_file: '/secret' }),
  certificate: oauthTable({ ...APPLICATION, grant: 'client_credentials', client_certificate_file: '/pem' }),
  person: oauthTable({ ...APPLICATION, grant: 'refresh_token', refresh_token_file: '/token' }),
  account: oauthTable({ provider: 'google', grant: 'service_account', service_account_file: '/json' }),
  googlePerson: oauthTable({
    provider: 'google',
    grant: 'refresh_token',
    client_id: 'app',
    client_secret_file: '/secret',
    refresh_token_file: '/token',
  }),
}

/** The text that deferd prints after "no access token: oauth.NAME: ". */
function printed(table: keyof typeof TABLES, error: string, aadsts = ''): string {
  const body = JSON.stringify({ error, error_description: aadsts === '' ? 'no' : `${aadsts}: a text. Trace ID: 1-2-3` })
  const answer = tokenAnswer({ kind: 'reply', status: 400, body })
  if (answer.kind === 'token') throw new Error('a refusal has no token')
  return `${answer.why}: ${adviceFor(TABLES[table], answer)}`
}

/** Words of the sentence that deferd prints, which the cure of the page agrees with. */
const ADVICE: Readonly<Record<string, readonly [table: keyof typeof TABLES, advice: RegExp]>> = {
  AADSTS7000215: ['secret', /value of the client secret, not its id/],
  AADSTS7000222: ['secret', /has expired: create a new one/],
  AADSTS700016: ['secret', /correct client_id or tenant/],
  AADSTS90002: ['secret', /correct tenant/],
  AADSTS900023: ['secret', /correct tenant/],
  AADSTS700027: ['certificate', /add the certificate of \/pem to the application/],
  AADSTS700024: ['certificate', /clock of this machine/],
  AADSTS70011: ['secret', /correct scope/],
  AADSTS1002012: ['secret', /correct scope/],
  AADSTS500011: ['secret', /correct scope/],
  AADSTS7000218: ['person', /allow public client flows/],
  AADSTS65001: ['person', /consent/],
  AADSTS700082: ['person', /login has ended: run deferd oauth login m365/],
  AADSTS50173: ['person', /login has ended: run deferd oauth login m365/],
  AADSTS70008: ['person', /login has ended: run deferd oauth login m365/],
  AADSTS50076: ['person', /Conditional Access/],
  AADSTS50079: ['person', /Conditional Access/],
  AADSTS53003: ['person', /Conditional Access/],
}

const authorityRows = rowsOf(M365, 'error').flatMap(([cell = '']) =>
  [...cell.matchAll(/AADSTS\d+/g)].map(([number]) => ({ number, code: /`(\w+)`/.exec(cell)?.[1] ?? 'interaction_required' })),
)

test('every error of the authority on the page has its advice here', () => {
  expect(authorityRows.map(({ number }) => number).toSorted()).toEqual(Object.keys(ADVICE).toSorted())
})

test.each(authorityRows)('$number $code is printed with its number and the cure', ({ number, code }) => {
  const [table, advice] = ADVICE[number] ?? ['secret', /never/]
  const text = printed(table, code, number)
  expect(text.startsWith(`${code} (${number}): `)).toBe(true)
  expect(text).toMatch(advice)
  expect(text).not.toContain('Trace')
})

test.each([
  ['`unauthorized_client`', 'account', /domain-wide delegation/],
  ['`invalid_grant` with a service account', 'account', /key of the account or the clock/],
  ['`invalid_grant` with a refresh token', 'googlePerson', /login has ended/],
  ['`invalid_client`', 'googlePerson', /client_id or the secret/],
  ['`invalid_client`', 'account', /no such service account: .* \/json/],
  ['`admin_policy_enforced`, `access_denied`', 'googlePerson', /\[oauth\.m365\]/],
] as const)('%s of Google is printed with the cure', (cell, table, advice) => {
  expect(rowsOf(GOOGLE, 'error or reply').map(([first]) => first)).toContain(cell)
  for (const [, code = ''] of cell.matchAll(/`(\w+)`/g)) {
    expect(printed(table, code)).toMatch(advice)
    expect(printed(table, code).startsWith(`${code}: `)).toBe(true)
  }
})

async function site(): Promise<World> {
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, { mode: 0o600 })
    return join(folder, name)
  }
  const world = await createWorld({
    config: {
      relayhost: `[${HOP}]:587`,
      smtp_tls_security_level: 'encrypt',
      smtp_sasl_password_maps: file('passwords', `[${HOP}]:587 app@contoso.example:\n`),
      smtp_sasl_oauth: 'm365',
      oauth: { m365: { ...APPLICATION, grant: 'client_credentials', client_secret_file: file('secret', 'a secret\n') } },
    },
  })
  world.authority({ clients: { app: { secret: 'a secret' } } }).protects(HOP)
  return world
}

async function attemptIn(world: World): Promise<Attempt | undefined> {
  await createTransport(world.transport()).sendMail({ from: 'app@contoso.example', to: 'ann@far.example', text: 'hi' })
  await world.advance('1s')
  return world.attempts('ann@far.example')[0]
}

/** Stage at which the server gives a reply of the page. */
const stageOf = (reply: string): FaultStage =>
  /^(?:535|534|550 5\.7\.30|454)/.test(reply) ? 'auth' : /^530|5\.7\.57|5\.7\.0|5\.7\.1 /.test(reply) ? 'mail' : 'end-of-data'

/** `530 or 550 5.7.57 TEXT; 554 5.2.252 TEXT`: a reply of each code. A second text without a code is another one of the same reply. */
function repliesOf(cell: string): readonly string[] {
  const reply = /(\d{3})(?: or (\d{3}))? (\d\.\d+\.\d+)(?: or (\d\.\d+\.\d+))? ([^;]+)/g
  return [...cell.matchAll(reply)].flatMap(([, code, other, status, otherStatus, text = '']) => [
    `${code} ${status} ${text.trim()}`,
    ...(other === undefined ? [] : [`${other} ${status} ${text.trim()}`]),
    ...(otherStatus === undefined ? [] : [`${code} ${otherStatus} ${text.trim()}`]),
  ])
}

const replyRows = [...rowsOf(M365, 'reply'), ...rowsOf(GOOGLE, 'error or reply')].flatMap(([cell = '', , cure = '']) =>
  repliesOf(cell).map((reply) => ({ reply, cure })),
)

/** Replies of servers that concern no login. */
const WITHOUT_HINT = /^(?:550 5\.4\.5|550 5\.7\.[01]|530 5\.7\.0) /

test('the tables of replies are read', () => {
  expect(replyRows.length).toBeGreaterThan(15)
})

test.each(replyRows)('$reply: the mail waits or is returned as the page says', async ({ reply, cure }) => {
  await using world = await site()
  world.rule({ at: stageOf(reply), mx: HOP, reply })
  const attempt = await attemptIn(world)
  expect(attempt?.reply).toBe(reply)
  expect(attempt?.outcome).toBe(/returned/.test(cure) ? 'bounced' : 'deferred')
  if (WITHOUT_HINT.test(reply)) return
  expect(hintOf(attempt ?? null)).not.toBeNull()
})

type Mistakes = Readonly<{
  authority: Readonly<Record<string, { fails: AuthorityFailure }>>
  rule: Readonly<Record<string, { at: FaultStage; reply: string }>>
}>
const mistakes = parse(blockWith(M365, '[authority.wrong-secret]').text) as unknown as Mistakes

test.each(Object.entries(mistakes.authority))('the mistake %s of the rehearsal keeps mail waiting', async (_, { fails }) => {
  await using world = await site()
  world
    .authority({ clients: { app: { secret: 'a secret' } } })
    .protects(HOP)
    .fails(fails)
  const attempt = await attemptIn(world)
  expect(attempt).toMatchObject({ outcome: 'deferred', stage: 'auth' })
  expect(attempt?.reason).toMatch(/no access token: oauth\.m365: \w+ \(AADSTS\d+\): |said: 535 5\.7\.3 Authentication unsuccessful/)
})

test.each(Object.entries(mistakes.rule))('the mistake %s of the rehearsal keeps mail waiting, with a hint', async (_, { at, reply }) => {
  await using world = await site()
  world.rule({ at, mx: HOP, reply })
  const attempt = await attemptIn(world)
  expect(attempt).toMatchObject({ outcome: 'deferred', reply })
  expect(hintOf(attempt ?? null)).not.toBeNull()
})
