/** Checks of content (header_checks, body_checks, smtp_header_checks), from the client to the mailbox. */
import { createTransport } from 'nodemailer'
import { describe, expect, test } from 'vitest'
import { postfixLines } from '../../src/telemetry/log-records.ts'
import { createWorld, type World } from '../../src/testkit/index.ts'

const HEADER = [
  '/^Subject: spam/ REJECT no spam here',
  '/^Subject: later/ REJECT 4.7.1 come back later',
  '/^Subject: gone/ DISCARD silently',
  '/^Subject: wait/ HOLD',
  '/^Subject: to (\\w+)/ REDIRECT $$1@x.example',
  '/^X-Old: (.*)/ REPLACE X-New: $$1',
  '/^X-Secret/ IGNORE',
  '/^X-Pre/ PREPEND X-Before: yes',
  '/^X-Slow: ((a?){500}a{500}\\bz|.*q$$)/ REJECT slow',
].map((rule) => `{${rule}}`)
const BODY = ['/^password: (.*)/ REPLACE password: removed', '/^stop/ REJECT'].map((rule) => `{${rule}}`)
const CONFIG = {
  header_checks: `pcre:{${HEADER.join(', ')}}`,
  body_checks: `pcre:{${BODY.join(', ')}}`,
}

interface Sent {
  readonly subject?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly text?: string
  readonly to?: readonly string[]
}

/** Sends a message; the reply to its content, or the error. */
async function send(world: World, { to = ['ann@far.example'], text = 'hi\n', ...mail }: Sent): Promise<string> {
  try {
    const { response } = await createTransport(world.transport()).sendMail({ from: 'app@us.example', to: [...to], text, ...mail })
    return response
  } catch (error) {
    return String(error)
  }
}

function logOf(world: World): readonly string[] {
  const lines: string[] = []
  world.relayEvents.listen((event) => lines.push(...postfixLines(event).map(({ program, text }) => `${program}: ${text}`)))
  return lines
}

describe('a message', () => {
  test('is refused by its header or body, with the text of the rule and one line in the log', async () => {
    await using world = await createWorld({ config: CONFIG })
    const log = logOf(world)
    expect(await send(world, { subject: 'spam' })).toContain('550 5.7.1 no spam here')
    expect(await send(world, { subject: 'later' })).toContain('451 4.7.1 come back later')
    expect(await send(world, { text: 'stop\n' })).toContain('550 5.7.1 message content rejected')
    await world.settle()
    expect(world.mailbox('ann@far.example').mails()).toEqual([])
    expect(log.filter((line) => line.includes('reject:'))).toEqual([
      expect.stringMatching(
        /^cleanup: \w+: reject: header Subject: spam from unknown\[127\.0\.0\.1\]; from=<app@us\.example> to=<ann@far\.example> proto=ESMTP helo=<.*>: 5\.7\.1 no spam here$/,
      ),
      expect.stringMatching(/reject: header Subject: later .*: 4\.7\.1 come back later$/),
      expect.stringMatching(/reject: body stop .*: 5\.7\.1 message content rejected$/),
    ])
  })

  test('is discarded after 250, and nothing of it is queued', async () => {
    await using world = await createWorld({ config: CONFIG })
    const log = logOf(world)
    expect(await send(world, { subject: 'gone', text: `${'x'.repeat(70)}\n`.repeat(8000) })).toMatch(/^250 2\.0\.0 Ok: queued as /)
    await world.settle()
    expect(world.mailbox('ann@far.example').mails()).toEqual([])
    expect(await world.relay.status.all()).toMatchObject({ tally: { queues: [] } })
    expect(log.map((line) => line.replace(/: \w+:/, ':'))).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^cleanup: discard: header Subject: gone .*: silently$/),
        'smtpd: client=unknown[127.0.0.1]',
      ]),
    )
  })

  test('is queued on hold, and delivered when it is released', async () => {
    await using world = await createWorld({ config: CONFIG })
    await send(world, { subject: 'wait' })
    await world.advance('2d')
    expect(world.mailbox('ann@far.example').mails()).toEqual([])
    expect(await world.relay.status.all()).toMatchObject({ tally: { queues: [{ queue: 'hold', messages: 1 }] } })
    await world.operate('release')
    await world.settle()
    expect(world.mailbox('ann@far.example').mails()).toHaveLength(1)
  })

  test('is redirected from all its recipients to one', async () => {
    await using world = await createWorld({ config: CONFIG })
    await send(world, { subject: 'to ops', to: ['ann@far.example', 'bob@far.example'] })
    await world.settle()
    expect(world.mailbox('ops@x.example').mails()).toMatchObject([{ to: ['ops@x.example'] }])
    expect([...world.mailbox('ann@far.example').mails(), ...world.mailbox('bob@far.example').mails()]).toEqual([])
  })

  test('is stored as it was changed, and its size is that of the changed content', async () => {
    await using world = await createWorld({ config: CONFIG })
    const sizes: number[] = []
    world.relayEvents.listen((event) => void (event.kind === 'accepted' && sizes.push(event.message.size)))
    await send(world, { headers: { 'X-Old': 'v', 'X-Secret': 's', 'X-Pre': 'p' }, text: 'password: 123\nother\n' })
    await world.settle()
    const [mail] = world.mailbox('ann@far.example').mails()
    expect(mail?.content).toMatch(/X-New: v\r\nX-Before: yes\r\nX-Pre: p\r\n/)
    expect(mail?.content).toMatch(/\r\n\r\npassword: removed\r\nother\r\n$/)
    expect(mail?.content).not.toMatch(/X-Secret|X-Old|123/)
    expect(sizes).toEqual([Buffer.byteLength(mail?.content ?? '')])
  })

  test('whose header takes a thread to examine is accepted in the same instant of virtual time', async () => {
    await using world = await createWorld({ config: CONFIG })
    const long = Array.from({ length: 40 }, () => 'a'.repeat(70)).join(' ')
    expect(await send(world, { headers: { 'X-Slow': long } })).toMatch(/^250 /)
    await world.settle()
    expect(world.attempts('ann@far.example')).toMatchObject([{ at: 0, outcome: 'delivered' }])
  })
})

test('smtp_header_checks change the message that is sent, not the one that is queued', async () => {
  const rules = ['/^X-Old: (.*)/ REPLACE X-Out: $$1', '/^X-Secret/ IGNORE', '/^Subject/ PREPEND X-Before: s', '/^Content-Type/ IGNORE']
  await using world = await createWorld({ config: { smtp_header_checks: `pcre:{${rules.map((rule) => `{${rule}}`).join(',')}}` } })
  await send(world, { subject: 'x', headers: { 'X-Old': 'v', 'X-Secret': 's' }, to: ['ann@far.example'] })
  await world.settle()
  const [mail] = world.mailbox('ann@far.example').mails()
  expect(mail?.content).toMatch(/X-Out: v\r\n/)
  expect(mail?.content).toMatch(/X-Before: s\r\nSubject: x\r\n/)
  expect(mail?.header('Content-Type')).toBe('text/plain; charset=utf-8')
  expect(mail?.header('X-Secret')).toBeUndefined()
})
