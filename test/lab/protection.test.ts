/** Hostile requests to the port of a lab: hosts, origins, sizes, tokens, and parameters that would open files of the machine. */
import { request } from 'node:http'
import { expect, test } from 'vitest'
import { OPTIONS } from '../../src/config/options.ts'
import { refusedNames } from '../../src/lab/refused-parameters.ts'
import { TestLab } from '../support/lab-client.ts'

interface Sent {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Status of a request with any header fields, which fetch() would not send. */
const statusOf = (lab: TestLab, { method = 'GET', path = '/', headers = {}, body }: Sent): Promise<number> =>
  new Promise((resolve, reject) => {
    const sent = request(`${lab.base}${path}`, { method, headers }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    sent.on('error', reject)
    sent.end(body)
  })

const JSON_TYPE = { 'content-type': 'application/json' }

test('a foreign host, a foreign origin and a wait that another site begins are refused', async () => {
  await using lab = await TestLab.open()
  expect(await statusOf(lab, { headers: { host: 'evil.example' } })).toBe(421)
  expect(
    await statusOf(lab, { method: 'POST', path: '/worlds', headers: { origin: 'https://evil.example', ...JSON_TYPE }, body: '{}' }),
  ).toBe(403)
  expect(
    await statusOf(lab, { method: 'POST', path: '/worlds', headers: { 'sec-fetch-site': 'cross-site', ...JSON_TYPE }, body: '{}' }),
  ).toBe(403)
  const world = await lab.world()
  const path = `/worlds/${world.id}/mailboxes/a@x.example/wait?advance=1d`
  expect(await statusOf(lab, { path, headers: { 'sec-fetch-site': 'cross-site' } })).toBe(403)
  expect(await world.get('/clock')).toMatchObject({ elapsed: 0 })
  expect(await statusOf(lab, { method: 'POST', path: '/worlds', headers: { 'content-type': 'text/plain' }, body: '{}' })).toBe(415)
})

test('a body that is too large is refused before it is read', async () => {
  await using lab = await TestLab.open()
  const large = { ...JSON_TYPE, 'content-length': '10000000000', expect: '100-continue' }
  const status = await new Promise((resolve) => {
    const sent = request(`${lab.base}/worlds`, { method: 'POST', headers: large }, (response) => {
      resolve(response.statusCode)
      sent.destroy()
    })
    sent.on('error', () => undefined)
    sent.flushHeaders()
  })
  expect(status).toBe(413)
  expect((await lab.ask('POST', '/worlds', `{"script":"${'x'.repeat(26_000_000)}"}`)).status).toBe(413)
})

test('wrong tokens are refused, and after ten of them the address for a while', async () => {
  const token = 'a-token-of-the-lab-of-tests'
  await using lab = await TestLab.open({ token })
  expect(await statusOf(lab, {})).toBe(401)
  expect(await statusOf(lab, { headers: { authorization: `Bearer ${token}` } })).toBe(200)
  for (let n = 0; n < 10; n++) expect(await statusOf(lab, { headers: { authorization: `Bearer wrong-${n}` } })).toBe(401)
  expect(await statusOf(lab, { headers: { authorization: `Bearer ${token}` } })).toBe(429)
})

/** Parameters whose sentence tells of files, commands or ports and that a world may have: what they name is no file of the machine. */
const HARMLESS: ReadonlySet<string> = new Set([])

test('every parameter of a file, a command or a port is refused by its name', () => {
  const opening = Object.entries(OPTIONS)
    .filter(
      ([name, { about }]) =>
        /(?:_file|_files|_CAfile|_command|_directory|_listen|_database|_maps$)/.test(name) &&
        /\b(?:[Ff]iles?|[Ff]older|[Cc]ommand|URL|PEM)\b/.test(about),
    )
    .map(([name]) => name)
    .filter((name) => !name.endsWith('_maps') || name === 'smtp_sasl_password_maps')
  expect(opening.length).toBeGreaterThan(8)
  const allowed = opening.filter((name) => refusedNames({ [name]: 'x' }).length === 0 && !HARMLESS.has(name))
  expect(allowed).toEqual([])
})

test.each([
  [{ queue_directory: '/tmp' }, '/config/queue_directory'],
  [{ log_file: '/tmp/x' }, '/config/log_file'],
  [{ admin_listen: '127.0.0.1:1' }, '/config/admin_listen'],
  [{ http_listen: '127.0.0.1:1' }, '/config/http_listen'],
  [{ queue_database: 'postgresql://x/y' }, '/config/queue_database'],
  [{ smtp_sasl_oauth_token_command: 'id' }, '/config/smtp_sasl_oauth_token_command'],
  [{ smtpd_sasl_users_file: '/etc/passwd' }, '/config/smtpd_sasl_users_file'],
  [{ bounce_template_file: '/etc/passwd' }, '/config/bounce_template_file'],
  [{ dkim: { 'x.example': { keys: ['s:/etc/passwd'] } } }, '/config/dkim'],
  [{ relay_recipient_maps: 'texthash:/etc/passwd' }, '/config/relay_recipient_maps'],
  [{ relay_recipient_maps: 'texthash:passwd' }, '/config/relay_recipient_maps'],
  [{ header_checks: 'regexp:/etc/passwd' }, '/config/header_checks'],
  [{ mynetworks: ['/etc/passwd'] }, '/config/mynetworks/0'],
  [{ smtpd_recipient_restrictions: ['check_policy_service inet:127.0.0.1:9', 'permit'] }, '/config/smtpd_recipient_restrictions/0'],
  [{ mail_name: 'texthash', relay_recipient_maps: '$mail_name:passwd' }, '/config/relay_recipient_maps'],
  [{ mail_name: '/etc/passwd' }, '/config/mail_name'],
  [{ schedule: { nightly: { at: '0 3 * * *', do: 'backup', to: 'x' } } }, '/config/schedule/nightly/to'],
])('%j is refused with its pointer', async (config, pointer) => {
  await using lab = await TestLab.open()
  const refused = await lab.ask('POST', '/worlds', { config })
  expect(refused.status, refused.text).toBe(422)
  expect(refused.json.errors[0]?.pointer).toBe(pointer)
})

test('a store in a folder, code as a zone and a path with dots are refused', async () => {
  await using lab = await TestLab.open()
  expect((await lab.ask('POST', '/worlds', { store: { directory: '/tmp' } })).json.errors[0]?.pointer).toBe('/store')
  expect((await lab.ask('POST', '/worlds', { zone: 'process.exit()' })).json.errors[0]?.pointer).toBe('/zone')
  expect(await statusOf(lab, { path: '/worlds/..%2f..%2fetc' })).toBe(404)
  expect(await statusOf(lab, { path: '/worlds/%zz/clock' })).toBe(404)
})
