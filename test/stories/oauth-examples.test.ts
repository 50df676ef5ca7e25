/** The configurations of the guides for Microsoft 365 and Google, as they are: loaded with their files, and used by a relay that delivers mail. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { parse, stringify } from 'smol-toml'
import { afterAll, expect, test } from 'vitest'
import { loadConfig, type LoadedConfig } from '../../src/config/load.ts'
import { readPasswords } from '../../src/daemon/delivery-secrets.ts'
import { readOauthClients } from '../../src/oauth/oauth-client.ts'
import { createWorld, type AuthorityOptions, type World, type WorldConfig } from '../../src/testkit/index.ts'
import { blocksOf, blockWith } from '../support/fenced-blocks.ts'
import { rsaKeys } from '../support/oauth-clients.ts'
import { CLIENT_CERTIFICATE, CLIENT_KEY } from '../support/rsa-certificate.ts'

const folder = mkdtempSync(join(tmpdir(), 'deferd-examples-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const CLIENT = '11111111-2222-3333-4444-555555555555'
const SECRET = 'the-value-of-the-secret'
const ACCOUNT = 'deferd@project.iam.gserviceaccount.com'
const OUTLOOK = 'smtp.office365.com'
const GMAIL = 'smtp.gmail.com'

const exampleText = (name: string): string => readFileSync(join(import.meta.dirname, '../../examples', name), 'utf8')

/** The text of a configuration with its files in the folder of this test. */
const inFolder = (text: string): string => text.replaceAll('/etc/deferd', folder).replaceAll('/var/lib/deferd', join(folder, 'queue'))

function write(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text, { mode: 0o600 })
  return path
}

/** Loads a configuration as deferd start does, with the files that it names. */
function load(text: string): LoadedConfig {
  const file = write('deferd.toml', inFolder(text))
  return loadConfig({ file, env: {}, overrides: [], uid: 0, calledAs: 'deferd', hostname: 'relay.contoso.example' })
}

/** The parameters of a configuration for a world, which has a port of its own in place of smtpd_listen. */
function worldConfig(text: string): WorldConfig {
  const { smtpd_listen: _, ...config } = parse(inFolder(text)) as WorldConfig
  return config
}

const send = (world: World, from: string, to: string): Promise<unknown> =>
  createTransport(world.transport()).sendMail({ from, to, subject: 'report', text: 'hi' })

const noCommand = () => () => Promise.reject(new Error('no command is used'))

function writeServiceAccount(): string {
  const { privateKey, publicKey } = rsaKeys()
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' })
  write('google.json', JSON.stringify({ type: 'service_account', private_key_id: 'k1', private_key: key, client_email: ACCOUNT }))
  return publicKey.export({ type: 'spki', format: 'pem' }).toString()
}

test.each([
  ['microsoft-365.toml', 'm365', OUTLOOK],
  ['printer-to-microsoft-365.toml', 'm365', OUTLOOK],
  ['google.toml', 'google', GMAIL],
])('examples/%s is a configuration without mistakes', (name, table, hop) => {
  write('passwords', `[${hop}]:587 relay@contoso.example:\n`)
  write('m365.secret', `${SECRET}\n`)
  writeServiceAccount()
  const loaded = load(exampleText(name))
  expect([...loaded.config.oauth.keys()]).toEqual([table])
  expect(loaded.config.smtp_sasl_oauth).toBe(table)
  expect(readPasswords(loaded.config)).toContain(hop)
  expect(readOauthClients(loaded, noCommand).get(table)?.table.name).toBe(table)
})

test('examples/microsoft-365.toml delivers mail of any sender as the mailbox, within the limits of Exchange Online', async () => {
  write('passwords', `[${OUTLOOK}]:587 relay@contoso.example:\n`)
  write('m365.secret', `${SECRET}\n`)
  await using world = await createWorld({ config: worldConfig(exampleText('microsoft-365.toml')) })
  const authority = world.authority({ clients: { [CLIENT]: { secret: SECRET } } })
  authority.protects(OUTLOOK, { mailboxes: { 'relay@contoso.example': { fullAccess: [CLIENT] } } })
  const to = Array.from({ length: 31 }, (_, n) => `to${n}@far.example`)
  for (const address of to) await send(world, 'root@relay.contoso.example', address)
  await world.advance('59s')
  const arrived = () => to.flatMap((address) => world.mailbox(address).mails())
  expect(arrived()).toHaveLength(30)
  await world.advance('10s')
  expect(arrived()).toHaveLength(31)
  expect(arrived()[0]).toMatchObject({ from: 'relay@contoso.example', tls: true })
  expect(arrived()[0]?.content).toMatch(/^From: relay@contoso\.example\r$/m)
  expect(authority.requests()).toHaveLength(1)
})

test('examples/google.toml delivers mail with the token of a service account', async () => {
  write('passwords', `[${GMAIL}]:587 relay@contoso.example:\n`)
  const publicKey = writeServiceAccount()
  await using world = await createWorld({ config: worldConfig(exampleText('google.toml')) })
  world
    .authority({ provider: 'google', clients: { [ACCOUNT]: { publicKey, delegates: ['relay@contoso.example'] } } })
    .protects(GMAIL, { mailboxes: { 'relay@contoso.example': {} } })
  await send(world, 'root@relay.contoso.example', 'ann@far.example')
  await world.settle()
  expect(world.mailbox('ann@far.example').mails()).toMatchObject([{ from: 'relay@contoso.example', tls: true }])
})

const MICROSOFT = 'docs/microsoft-365.md'
const GOOGLE = 'docs/google.md'

test.each([
  [MICROSOFT, 'microsoft-365.toml'],
  [MICROSOFT, 'printer-to-microsoft-365.toml'],
  [GOOGLE, 'google.toml'],
])('%s has the parameters of examples/%s', (page, name) => {
  const parameters = exampleText(name).slice(exampleText(name).indexOf('\n\n') + 2)
  expect(blocksOf(page).map(({ text }) => text)).toContain(parameters)
})

/** An example with the parameters and tables of a block in place of its own. */
function varied(example: string, block: string): string {
  const [base, change] = [parse(exampleText(example)), parse(block)]
  const oauth = Object.assign({}, base['oauth'], change['oauth'])
  return stringify({ ...base, ...change, oauth })
}

const variants = [MICROSOFT, GOOGLE].flatMap((page) => {
  const example = page === GOOGLE ? 'google.toml' : 'microsoft-365.toml'
  const complete = blocksOf(page).filter(({ language }) => language === 'toml')
  return complete.filter(({ text }) => !/myhostname|\[authority\./.test(text)).map(({ text, line }) => ({ page, line, text, example }))
})

test.each(variants)('the variant at $page:$line is valid in $example', ({ text, example }) => {
  write('passwords', `[${OUTLOOK}]:587 relay@contoso.example:\n`)
  for (const name of ['m365.secret', 'google.secret', 'm365.refresh-token', 'google.refresh-token']) write(name, `${SECRET}\n`)
  write('m365.pem', CLIENT_CERTIFICATE + CLIENT_KEY)
  write('header_checks', blockWith(MICROSOFT, '/^From:/').text)
  writeServiceAccount()
  const loaded = load(varied(example, text))
  expect(readPasswords(loaded.config)).toBeDefined()
  expect(readOauthClients(loaded, noCommand).size).toBe(1)
})

const PERSON = 'relay@contoso.example'

test.each<[string, string, AuthorityOptions]>([
  ['certificate', 'client_certificate_file', { clients: { [CLIENT]: { certificate: CLIENT_CERTIFICATE } } }],
  [
    'login of a person',
    'refresh_token_file',
    { clients: { [CLIENT]: {} }, logins: [{ client: CLIENT, user: PERSON, refreshToken: SECRET }] },
  ],
])('the %s of the page delivers mail', async (_, member, options) => {
  write('passwords', `[${OUTLOOK}]:587 ${PERSON}:\n`)
  write('m365.pem', CLIENT_CERTIFICATE + CLIENT_KEY)
  write('m365.refresh-token', `${SECRET}\n`)
  await using world = await createWorld({ config: worldConfig(varied('microsoft-365.toml', blockWith(MICROSOFT, member).text)) })
  world.authority(options).protects(OUTLOOK, { mailboxes: { [PERSON]: {} } })
  await send(world, 'root@relay.contoso.example', 'ann@far.example')
  await world.settle()
  expect(world.mailbox('ann@far.example').mails()).toMatchObject([{ from: PERSON, tls: true }])
})

test('with the header checks of the page, Reply-To of a device is kept', async () => {
  write('passwords', `[${OUTLOOK}]:587 scanner@contoso.example:\n`)
  write('m365.secret', `${SECRET}\n`)
  write('header_checks', blockWith(MICROSOFT, '/^From:/').text)
  const { smtpd: _, ...config } = worldConfig(varied('printer-to-microsoft-365.toml', blockWith(MICROSOFT, 'header_checks = ').text))
  await using world = await createWorld({ config })
  world.authority({ clients: { [CLIENT]: { secret: SECRET } } }).protects(OUTLOOK, { mailboxes: { 'scanner@contoso.example': {} } })
  const mail = { from: 'scan@device.lan', replyTo: 'ann@contoso.example', to: 'bob@far.example', subject: 'scan', text: 'hi' }
  await createTransport(world.transport()).sendMail(mail)
  await world.settle()
  const [arrived] = world.mailbox('bob@far.example').mails()
  expect(arrived).toMatchObject({ from: 'scanner@contoso.example', tls: true })
  expect(arrived?.content).toMatch(/^From: Scanner <scanner@contoso\.example>\r$/m)
  expect(arrived?.content).toMatch(/^Reply-To: ann@contoso\.example\r$/m)
})

test('with the logins by sender of the page, each mailbox sends its own mail', async () => {
  write('passwords', blockWith(MICROSOFT, 'billing@contoso.example   billing').text)
  write('m365.secret', `${SECRET}\n`)
  const change = blockWith(MICROSOFT, 'smtp_sender_dependent_authentication').text
  await using world = await createWorld({ config: worldConfig(varied('microsoft-365.toml', change)) })
  const senders = ['billing@contoso.example', 'scanner@contoso.example', 'relay@contoso.example']
  const mailboxes = Object.fromEntries(senders.map((sender) => [sender, { fullAccess: [CLIENT] }]))
  world.authority({ clients: { [CLIENT]: { secret: SECRET } } }).protects(OUTLOOK, { mailboxes })
  for (const sender of [...senders.slice(0, 2), 'root@relay.contoso.example']) await send(world, sender, 'ann@far.example')
  await world.settle()
  const mails = world.mailbox('ann@far.example').mails()
  expect(mails.map(({ from }) => from).toSorted()).toEqual(senders.toSorted())
})
