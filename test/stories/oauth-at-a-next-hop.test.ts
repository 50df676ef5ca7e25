/** The relay of a world at a next hop that checks its tokens and the rights of its mailbox. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { createWorld, type Authority, type ProtectionOptions, type World } from '../../src/testkit/index.ts'

const HOP = 'smtp.office365.com'
const SENDER = 'app@contoso.example'

/** A relay whose next hop is Exchange Online. */
async function opened(protection: ProtectionOptions = {}): Promise<{ readonly world: World; readonly authority: Authority }> {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-oauth-'))
  const file = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }
  const world = await createWorld({
    config: {
      relayhost: `[${HOP}]:587`,
      smtp_tls_security_level: 'secure',
      smtp_sasl_password_maps: file('sasl_passwd', `[${HOP}]:587 ${SENDER}:\n`),
      smtp_sasl_oauth: 'm365',
      oauth: {
        m365: {
          provider: 'microsoft',
          grant: 'client_credentials',
          tenant: 'contoso.example',
          client_id: 'app',
          client_secret_file: file('secret', 's3cret\n'),
        },
      },
    },
  })
  return { world, authority: world.authority({ clients: { app: { secret: 's3cret' } } }).protects(HOP, protection) }
}

async function send(world: World, to: string): Promise<void> {
  await createTransport(world.transport()).sendMail({ from: SENDER, to, text: 'hi' })
}

test('the relay gets a token, logs in over TLS, and keeps the token for the next mail', async () => {
  const { world, authority } = await opened({ mailboxes: { [SENDER]: {} } })
  await using _ = world
  await send(world, 'ann@far.example')
  await send(world, 'bob@far.example')
  await world.settle()
  expect(world.mailbox('ann@far.example').mails()).toMatchObject([{ tls: true }])
  expect(world.mailbox('bob@far.example').mails()).toHaveLength(1)
  expect(authority.requests()).toMatchObject([
    { status: 200, form: { grant_type: 'client_credentials', client_id: 'app', scope: 'https://outlook.office365.com/.default' } },
  ])
})

test('a tenant with SMTP AUTH switched off defers mail, and a right that is restored delivers it', async () => {
  const { world, authority } = await opened({ smtpAuth: false })
  await using _ = world
  await send(world, 'ann@far.example')
  await world.advance('40m')
  expect(world.attempts('ann@far.example').at(-1)).toMatchObject({ outcome: 'deferred', status: '4.7.139' })
  // A switch of the tenant is no reason for another token.
  expect(authority.requests()).toHaveLength(1)
  authority.protects(HOP)
  await world.settle()
  expect(world.mailbox('ann@far.example').mails()).toHaveLength(1)
})

test('a mailbox without access defers mail, and one that may not send as the sender returns it', async () => {
  const { world, authority } = await opened({ mailboxes: { [SENDER]: { fullAccess: ['other'] } } })
  await using _ = world
  await send(world, 'ann@far.example')
  await world.advance('10m')
  expect(world.attempts('ann@far.example').at(-1)).toMatchObject({ outcome: 'deferred', status: '4.2.0', stage: 'end-of-data' })
  authority.protects(HOP, { mailboxes: { [SENDER]: {} } })
  await world.settle()
  expect(world.mailbox('ann@far.example').mails()).toHaveLength(1)
  await createTransport(world.transport()).sendMail({ from: 'news@other.example', to: 'ann@far.example', text: 'hi' })
  await world.advance('1m')
  expect(world.attempts('ann@far.example').at(-1)).toMatchObject({ outcome: 'bounced', status: '5.7.60' })
})
