/** Listeners with parameters of their own, in sessions at two listeners of one server. */
import { expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { seconds } from '../../src/system/clock.ts'
import { openSmtpd, OUTSIDER } from '../support/smtpd-harness.ts'

/** A listener without parameters of its own, and one with these. */
async function listeners(own: Readonly<Record<string, unknown>>, relay: Readonly<Record<string, unknown>> = {}) {
  const table = { address: '127.0.0.1:587', ...own }
  const { config } = configFrom({ smtpd_listen: ['127.0.0.1:25'], smtpd: [table], ...relay }, 'relay.example')
  const server = await openSmtpd(config)
  const at = (listener: 0 | 1, from = '127.0.0.1') => server.connect(from, undefined, listener)
  return { server, at }
}

test('banner, announced extensions and VRFY', async () => {
  const own = { smtpd_banner: 'submit.$mydomain ESMTP', smtpd_discard_ehlo_keywords: ['dsn'], disable_vrfy_command: true }
  const { at } = await listeners(own, { mydomain: 'relay.example' })
  const [ordinary, special] = [await at(0), await at(1)]
  expect([ordinary.heard, special.heard]).toEqual(['220 relay.example ESMTP Deferd\r\n', '220 submit.relay.example ESMTP\r\n'])
  expect(await ordinary.say('EHLO x')).toMatch(/VRFY[^]*DSN/)
  expect(await special.say('EHLO x')).not.toMatch(/VRFY|DSN/)
})

test('restrictions, access tables and owners of senders', async () => {
  const { at } = await listeners(
    {
      smtpd_client_restrictions: ['check_client_access inline:{{127.0.0.1 = 550 5.7.1 not here}}', 'permit'],
      smtpd_recipient_restrictions: [],
    },
    { smtpd_recipient_restrictions: ['check_recipient_access inline:{{ann@far.example = 550 5.7.1 not her}}'] },
  )
  const transaction = ['EHLO x', 'MAIL FROM:<a@us.example>', 'RCPT TO:<ann@far.example>']
  expect(await (await at(0)).say(...transaction)).toMatch(/^550 5\.7\.1 .*not her$/)
  expect(await (await at(1)).say(...transaction)).toMatch(/^550 5\.7\.1 .*not here$/)

  const other = await listeners({ smtpd_recipient_restrictions: [] }, { smtpd_recipient_restrictions: ['reject'] })
  expect(await (await other.at(0)).say(...transaction)).toMatch(/^554 /)
  expect(await (await other.at(1)).say(...transaction)).toMatch(/^250 /)
})

test('owners of senders', async () => {
  const { at } = await listeners({
    smtpd_sender_login_maps: ['inline:{{ann@us.example = ann}}'],
    smtpd_sender_restrictions: ['reject_sender_login_mismatch'],
  })
  const transaction = ['EHLO x', 'MAIL FROM:<ann@us.example>', 'RCPT TO:<ann@far.example>']
  expect(await (await at(0)).say(...transaction)).toMatch(/^250 /)
  expect(await (await at(1)).say(...transaction)).toMatch(/^553 5\.7\.1 .*not logged in$/)
})

test('trusted networks, and who may name another client', async () => {
  const { at } = await listeners({ mynetworks: [], smtpd_authorized_xclient_hosts: [OUTSIDER] })
  const transaction = ['EHLO x', 'MAIL FROM:<a@us.example>', 'RCPT TO:<ann@far.example>']
  expect(await (await at(0)).say(...transaction)).toMatch(/^250 /)
  expect(await (await at(1)).say(...transaction)).toMatch(/^[45]54 .*Relay access denied$/)
  expect(await (await at(0, OUTSIDER)).say('EHLO x')).not.toContain('XCLIENT')
  expect(await (await at(1, OUTSIDER)).say('EHLO x')).toContain('XCLIENT')
})

test('recipients and size of a message', async () => {
  const { server, at } = await listeners({ smtpd_recipient_limit: 1, message_size_limit: 1000 })
  const [ordinary, special] = [await at(0), await at(1)]
  expect(await ordinary.say('EHLO x')).toContain('SIZE 10240000')
  expect(await special.say('EHLO x')).toContain('SIZE 1000')
  expect(await special.say('MAIL FROM:<a@us.example> SIZE=1001')).toMatch(/^552 /)
  const transaction = ['MAIL FROM:<a@us.example>', 'RCPT TO:<ann@far.example>', 'RCPT TO:<bob@far.example>']
  expect(await ordinary.say(...transaction)).toMatch(/^250 /)
  expect(await special.say(...transaction)).toMatch(/^452 4\.5\.3 /)
  const long = `Subject: x\r\n\r\n${'line\r\n'.repeat(300)}.`
  expect(await ordinary.say('DATA', long)).toMatch(/^250 /)
  expect(await special.say('DATA', long)).toBe('552 5.3.4 Error: message file too big')
  expect(server.intake.taken).toHaveLength(1)
})

test('time limits, errors, and lines that end in LF', async () => {
  const { server, at } = await listeners({ smtpd_timeout: '10s', smtpd_hard_error_limit: 2, smtpd_forbid_bare_newline: 'reject' })
  const [ordinary, special] = [await at(0), await at(1)]
  expect(await ordinary.say('ONE', 'TWO')).toMatch(/^5/)
  expect(await special.say('ONE', 'TWO')).toContain('421 4.7.0 relay.example Error: too many errors')
  const quiet = await at(1)
  await server.wait(seconds(11))
  expect(quiet.heard).toContain('421 4.4.2')
  expect(ordinary.closed).toBe(false)
  expect(await ordinary.send('NOOP\n')).toBe('250 2.0.0 Ok\r\n')
  expect(await (await at(1)).send('NOOP\n')).toMatch(/^550 5\.5\.2 .*bare <LF> received/)
})

test('the greeting, and permission to relay', async () => {
  const { at } = await listeners({
    smtpd_helo_required: true,
    smtpd_relay_restrictions: ['permit_sasl_authenticated', 'reject_unauth_destination'],
  })
  const transaction = ['MAIL FROM:<a@us.example>', 'RCPT TO:<ann@far.example>']
  expect(await (await at(0)).say(...transaction)).toMatch(/^250 /)
  const special = await at(1)
  expect(await special.say('MAIL FROM:<a@us.example>')).toBe('503 5.5.1 Error: send HELO/EHLO first')
  expect(await special.say('EHLO x', ...transaction)).toMatch(/^554 .*Relay access denied$/)
})

test('a table that would let strangers relay is refused', () => {
  const smtpd = [{ address: '127.0.0.1:587', smtpd_relay_restrictions: ['permit'] }]
  expect(() => configFrom({ smtpd }, 'relay.example')).toThrow(/would let every client relay/)
})

test('limits of clients count the connections of all listeners', async () => {
  const { at } = await listeners({}, { smtpd_client_connection_count_limit: 1 })
  await at(0, OUTSIDER)
  expect((await at(1, OUTSIDER)).heard).toMatch(/^421 4\.7\.0 .*too many connections/)
})

test('a reload changes the parameters of later connections', async () => {
  const { server, at } = await listeners({ smtpd_banner: 'before' })
  const open = await at(1)
  const values = {
    smtpd_listen: ['127.0.0.1:25'],
    smtpd: [{ address: '127.0.0.1:587', smtpd_banner: 'after', smtpd_client_restrictions: ['reject'] }],
  }
  await server.reload(configFrom(values, 'relay.example').config)
  const later = await at(1)
  expect([open.heard, later.heard]).toEqual(['220 before\r\n', '220 after\r\n'])
  expect(await open.say('EHLO x', 'MAIL FROM:<a@us.example>', 'RCPT TO:<ann@far.example>')).toMatch(/^250 /)
  expect(await later.say('EHLO x', 'MAIL FROM:<a@us.example>', 'RCPT TO:<ann@far.example>')).toMatch(/^554 /)
})

test('a reload keeps what is counted of clients', async () => {
  const relay = { smtpd_client_connection_count_limit: 2, smtpd_client_message_rate_limit: 1 }
  const { server, at } = await listeners({}, relay)
  const open = await at(1, OUTSIDER)
  const mail = async (client: typeof open) => client.say('EHLO x', 'MAIL FROM:<a@b.example>')
  expect(await mail(open)).toMatch(/^250 /)
  const values = { smtpd_listen: ['127.0.0.1:25'], smtpd: [{ address: '127.0.0.1:587' }], ...relay }
  await server.reload(configFrom(values, 'relay.example').config)
  expect(await mail(await at(1, OUTSIDER))).toBe(`450 4.7.1 Error: too much mail from ${OUTSIDER}`)
  expect((await at(0, OUTSIDER)).heard).toMatch(/^421 4\.7\.0 .*too many connections/)
  await open.say('QUIT')
  expect((await at(0, OUTSIDER)).heard).toMatch(/^220 /)
})
