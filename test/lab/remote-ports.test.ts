/** Real ports of the remote hosts of a world: another relay sends to them, and the rules change while it runs. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { startDaemon } from '../../src/daemon/daemon.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { portBelowEphemeral } from '../support/ports.ts'
import { TestLab, type LabClient } from '../support/lab-client.ts'

const WAIT = { timeout: 60_000 }

test('a port of a remote host is that of its domain, and the rules of the world act', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world({ remote_ports: ['mx.slow.example', 'MX2.any.example'] })
  const [slow, any] = world.remotePorts
  expect([slow?.mx, any?.mx]).toEqual(['mx.slow.example', 'mx2.any.example'])
  await world.post('/destinations/slow.example/greylists', { delay: '5m' })
  await world.post('/rules', { at: 'greeting', mx: 'mx2.*', reply: '421 4.3.2 closed' })
  const send = (port: number | undefined) =>
    createTransport({ host: '127.0.0.1', port, ignoreTLS: true }).sendMail({ from: 'a@us.example', to: 'ann@slow.example', text: 'hello' })
  await expect(send(any?.port)).rejects.toThrow('421 4.3.2 closed')
  await expect(send(slow?.port)).rejects.toThrow('451 4.7.1 Greylisted')
  await world.post('/clock/advance', { by: '5m' })
  expect((await send(slow?.port)).response).toMatch(/^250/)
  expect((await world.get('/mailboxes/ann@slow.example')).mails.length).toBe(1)
  expect((await world.get('/rules')).rules.map(({ used }) => used)).toEqual([1, 1])
  // The relay of the world has its own way to the same hosts.
  expect(await world.send('bob@slow.example')).toMatch(/^250/)
  expect((await world.get('/history')).order).toBe('concurrent')
})

test('a script that was recorded acts at a port', async () => {
  await using lab = await TestLab.open()
  const script =
    '[record]\nsessions = 1\nduration = "2s"\n\n[rule.rcpt-1]\nat = "rcpt"\nrecipient = "r1@d2.example"\nreply = "550 5.1.1 no"\n'
  const world = await lab.world({ script, remote_ports: ['mx.d2.example'], relay: false })
  const transport = createTransport({ host: '127.0.0.1', port: world.remotePorts[0]?.port, ignoreTLS: true })
  await expect(transport.sendMail({ from: 's1@d1.example', to: 'r1@d2.example', text: '' })).rejects.toThrow('550 5.1.1 no')
})

test('a world without a relay has ports, rules and mailboxes only', async () => {
  await using lab = await TestLab.open()
  const world = await lab.world({ relay: false, remote_ports: ['mx.any.example'], speed: 1 })
  expect(await world.get('')).toMatchObject({ smtp: null, is_up: false, remote_ports: [{ mx: 'mx.any.example', host: '127.0.0.1' }] })
  const refused = [
    await world.ask('POST', '/clock/settle', {}),
    await world.ask('POST', '/clock/advance', { by: '1s', after: { accepted: 1 } }),
    await world.ask('POST', '/crash', {}),
    await world.ask('POST', '/restart', {}),
    await world.ask('POST', '/operations', { operation: 'hold' }),
    await world.ask('POST', '/messages?from=a@us.example&to=b@any.example', 'Subject: hi\r\n\r\nhi', { 'content-type': 'message/rfc822' }),
  ]
  expect(refused.map(({ status, json }) => [status, json.type])).toEqual(refused.map(() => [409, '/problems/relay-down']))
  expect((await world.ask('GET', '/api/v1/messages')).status).toBe(404)
  const errors = async (body: object) => (await lab.ask('POST', '/worlds', body)).json.errors.map(({ pointer }) => pointer)
  expect(await errors({ relay: false, config: { myhostname: 'x.example' } })).toEqual(['/remote_ports', '/config'])
  expect(await errors({ remote_ports: ['mx.any.example:25'] })).toEqual(['/remote_ports/0'])
  expect(await errors({ remote_ports: ['mx.any.example', 'MX.any.example'] })).toEqual(['/remote_ports'])
})

/** A daemon whose next hop is a port of the lab. */
async function startRelay(nextHop: number) {
  const port = await portBelowEphemeral()
  const overrides = [
    `queue_directory=${mkdtempSync(join(tmpdir(), 'deferd-far-'))}`,
    `smtpd_listen=127.0.0.1:${port}`,
    `relayhost=[127.0.0.1]:${nextHop}`,
    'minimal_backoff_time=1s',
    'maximal_backoff_time=1s',
  ]
  const daemon = await startDaemon({ loaded: configFrom({}, 'relay.example', { overrides }), events: new Events(() => systemClock.now()) })
  const send = (to: string) =>
    createTransport({ host: '127.0.0.1', port, ignoreTLS: true }).sendMail({ from: 'app@us.example', to, text: 'hello' })
  return { daemon, send }
}

const usedOf = async (world: LabClient): Promise<number> => (await world.get('/rules')).rules[0]?.used ?? 0

test('another relay meets rules that are added and removed while it runs', { timeout: 120_000 }, async () => {
  await using lab = await TestLab.open()
  const world = await lab.world({ relay: false, remote_ports: ['mx.far.example'] })
  const { daemon, send } = await startRelay(world.remotePorts[0]?.port ?? 0)
  try {
    await world.post('/rules', { at: 'rcpt', recipient: 'ann@*', reply: '450 4.2.1 busy' })
    await send('ann@far.example')
    await expect.poll(() => usedOf(world), WAIT).toBeGreaterThan(1)
    expect((await world.get('/mailboxes/ann@far.example')).mails).toEqual([])
    const [rule] = (await world.get('/rules')).rules
    expect((await world.ask('DELETE', `/rules/${rule?.id}`)).status).toBe(200)
    expect((await world.get('/mailboxes/ann@far.example/wait?within=60s')).subject).toBe('')
    // The relay may send over a connection that it has kept open.
    await world.post('/rules', { at: 'mail', drop: 'rst' })
    await send('bob@far.example')
    await expect.poll(() => usedOf(world), WAIT).toBeGreaterThan(1)
    await world.ask('DELETE', `/rules/${(await world.get('/rules')).rules[0]?.id}`)
    expect((await world.get('/mailboxes/bob@far.example/wait?within=60s')).subject).toBe('')
  } finally {
    await daemon.stop()
  }
})
