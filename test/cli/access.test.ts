/** `deferd access`: entries that refuse, hold or permit mail before the lists of the configuration. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { startDaemon } from '../../src/daemon/daemon.ts'
import { Events } from '../../src/telemetry/events.ts'
import { play } from '../interop/dialogue.ts'
import { Operator } from '../support/operator.ts'

let operator: Operator
beforeEach(async () => {
  operator = new Operator()
  await operator.own(async () => undefined)
})
afterEach(() => operator.leave())

const access = (...argv: readonly string[]) => operator.run(['access', ...argv])

test('an entry is added, listed, replaced and removed, and each change is in the audit log', async () => {
  expect(await access('list')).toMatchObject({ code: 0, out: 'No access entries.\n' })
  const added = await access('add', 'sender', 'App@us.example', 'REJECT', 'too', 'many', 'bounces', '--for', '2h')
  expect(added).toMatchObject({ code: 0, out: expect.stringMatching(/^sender app@us\.example: REJECT too many bounces, until \d/) })
  await access('add', 'sender', 'app@us.example', 'DEFER')
  await access('add', 'client', '192.0.2', 'HOLD for a look')
  const listed = await access('list')
  expect(listed.out).toMatch(
    /^SUBJECT KEY {12}ACTION {10}ENDS {2}ADDED BY\nclient {2}192\.0\.2 {8}HOLD for a look never \S+\nsender {2}app@us\.example DEFER {11}never \S+\n$/,
  )
  const json = (await access('list', '--json')).out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as object)
  expect(json[1]).toEqual({
    subject: 'sender',
    key: 'app@us.example',
    action: 'DEFER',
    added_time: expect.any(Number),
    added_by: expect.any(String),
    expire_time: null,
  })
  expect(await access('remove', 'sender', 'APP@us.example')).toMatchObject({ code: 0, out: 'sender app@us.example: removed\n' })
  expect(await access('remove', 'sender', 'app@us.example')).toMatchObject({
    code: 65,
    err: expect.stringContaining('no access entry for sender app@us.example; deferd access list shows all'),
  })
  const audit = (await operator.run(['audit', '--json'])).out
  expect(audit.match(/"action":"access-(?:add|remove)"/g)).toHaveLength(4)
})

test('on a terminal, lines are cut to its width', async () => {
  await access('add', 'sender', `${'long-name-'.repeat(6)}@sub.domain.example`, 'REJECT', 'x'.repeat(200))
  await access('add', 'client', '192.0.2', 'HOLD')
  const { out } = await operator.run(['access', 'list'], { columns: 80 })
  const lines = out.trimEnd().split('\n')
  expect(lines.map((line) => line.length <= 80)).toEqual([true, true, true])
  expect(lines[2]).toMatch(/^sender {2}long-name-.*….*\.example REJECT x+… never operator$/)
})

test.each([
  [['sender', 'a@b.example', 'PERHAPS'], '"PERHAPS" is no action: write one of OK, DUNNO, REJECT'],
  [['sender', 'a@b.example', 'REDIRECT', 'nowhere'], '"nowhere" is no address'],
  [['client', '999.1.1.1', 'REJECT'], 'is neither an IPv4 address nor its first octets; write an address (192.0.2.7)'],
  [['client', '192.0.2.', 'REJECT'], 'is neither an IPv4 address nor its first octets; write an address (192.0.2.7)'],
  [['client', '192.0.2.0/24', 'REJECT'], 'is a network with a length; write its octets or groups, such as 192.0.2'],
  [['recipient', '', 'REJECT'], "argument 'key' is empty"],
  [['subject', 'x', 'REJECT'], 'Allowed choices are client, sender, recipient'],
  [['sender', 'a@b.example'], "missing required argument 'action'"],
  [['sender', 'a@b.example', 'REJECT', '--for', '0'], '--for must be longer than 0'],
])('add %j is refused', async (argv, message) => {
  expect(await access('add', ...argv)).toMatchObject({ code: 64, err: expect.stringContaining(message) })
  expect((await access('list')).out).toBe('No access entries.\n')
})

describe('with a daemon', () => {
  const replies = async (port: number, sender: string): Promise<string> =>
    (await play(port, ['EHLO x', `MAIL FROM:<${sender}>`, 'RCPT TO:<ann@far.example>'], { quiet: 3 }))[0] ?? ''

  test('an entry has its effect from the next recipient on, comes before the list, and survives a restart', async () => {
    const values = {
      queue_directory: operator.directory,
      relayhost: '[127.0.0.1]:9',
      smtpd_listen: '127.0.0.1:0',
      smtpd_sender_restrictions: { 'good@us.example': 'OK', 'us.example': 'REJECT by the list' },
    }
    const start = () => startDaemon({ loaded: configFrom(values, 'relay.example'), events: new Events(() => Date.now()) })
    let daemon = await start()
    const port = (): number => daemon.listeners[0]?.port ?? 0
    expect(await replies(port(), 'good@us.example')).toMatch(/^250 /)
    await access('add', 'sender', 'good@us.example', '550', '5.7.9', 'by', 'the', 'command')
    await access('add', 'sender', 'app@us.example', 'OK')
    await access('add', 'sender', 'short@far.example', 'REJECT', '--for', '1ms')
    const check = async (): Promise<void> => {
      expect(await replies(port(), 'good@us.example')).toBe('550 5.7.9 <good@us.example>: Sender address rejected: by the command')
      expect(await replies(port(), 'app@us.example')).toMatch(/^250 /)
      expect(await replies(port(), 'other@us.example')).toMatch(/^554 5\.7\.1 .*: by the list$/)
      expect(await replies(port(), 'short@far.example')).toMatch(/^250 /)
    }
    await check()
    await daemon.stop()
    daemon = await start()
    await check()
    expect(await access('remove', 'sender', 'good@us.example')).toMatchObject({ code: 0 })
    expect(await replies(port(), 'good@us.example')).toMatch(/^250 /)
    await daemon.stop()
  })
})
