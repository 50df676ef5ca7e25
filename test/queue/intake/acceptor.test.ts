import { describe, expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import type { Config } from '../../../src/config/options.ts'
import { Acceptor, type Submission } from '../../../src/queue/intake/acceptor.ts'
import { Rewriting } from '../../../src/rewriting/rewriting.ts'
import { openTables } from '../../../src/rewriting/tables.ts'
import { CHUNK_BYTES } from '../../../src/store/chunks.ts'
import { StoreUnavailable } from '../../../src/store/queue-store.ts'
import { eventLoopTurn } from '../../../src/system/event-loop.ts'
import { Events, type QueueEvent } from '../../../src/telemetry/events.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'
import { RecordingIntake } from '../../support/smtpd-harness.ts'
import { cutAt, segmentations } from '../../support/segments.ts'

const ENVELOPE = { sender: 'ann@us.example', recipients: [{ address: 'bob@far.example' }] }
const USER = { uid: 1000 }
const CLIENT = { name: 'unknown', address: '2001:db8::1', helo: '', protocol: 'SMTP', local: false, own: false }

function acceptorWith(settings: Partial<Config> = {}, tables: Readonly<Record<string, unknown>> = {}) {
  const clock = new VirtualClock({ zone: () => ({ offset: 90, name: 'XYZ' }) })
  const intake = new RecordingIntake(() => clock.now())
  const events = new Events(() => clock.now())
  const seen: QueueEvent[] = []
  events.listen((event) => seen.push(event))
  const config = { ...configFrom(tables, 'relay.example').config, ...settings }
  const rewriting = Rewriting.of(config, openTables(config).tables)
  const acceptor = new Acceptor({ intake, config, clock, events, rewriting })
  const accept = (content: string, more: Partial<Submission> = {}) =>
    acceptor.accept({ envelope: ENVELOPE, client: USER, content: [Buffer.from(content)], ...more })
  return { intake, acceptor, accept, seen }
}

test('mail from MAILER-DAEMON gets the null sender, from any client', async () => {
  const { intake, accept } = acceptorWith({ myorigin: 'us.example' })
  await accept('\r\nx\r\n', { envelope: { ...ENVELOPE, sender: 'MAILER-DAEMON@us.example' } })
  await accept('\r\nx\r\n', { envelope: { ...ENVELOPE, sender: 'mailer-daemon@far.example' }, client: CLIENT })
  expect(intake.taken.map(({ message }) => message.sender)).toEqual(['', 'mailer-daemon@far.example'])
})

test('mail that gets no id is refused for now, and nothing of it is stored', async () => {
  const { intake, accept } = acceptorWith()
  intake.begin = () => {
    throw new StoreUnavailable('no message ids are left')
  }
  const refused = await accept('x'.repeat(10 * CHUNK_BYTES))
  expect(refused).toEqual({ kind: 'refused', reply: { code: 451, status: '4.3.0', text: 'Error: queue file write error' } })
  expect(intake.taken).toEqual([])
})

const TEXTS =
  'From: =?utf-8?q?J=C3=B6rg?= <j@us.example>\r\nSubject: =?utf-8?b?R3LDvMOfZQ==?=\r\n  aus Berlin\r\nSubject: two\r\n\r\nhello\r\n'

test('Subject and From are kept as people read them, in any packets, unless queue_index_headers is off', async () => {
  const { intake, acceptor } = acceptorWith()
  for (const { packets } of segmentations(Buffer.from(TEXTS)))
    await acceptor.accept({ envelope: ENVELOPE, client: CLIENT, content: packets })
  const texts = { subject: 'Grüße aus Berlin', fromHeader: 'Jörg <j@us.example>' }
  for (const { message } of intake.taken) expect(message).toMatchObject(texts)
  const off = acceptorWith({ queue_index_headers: false })
  await off.accept(TEXTS)
  expect(off.intake.taken[0]?.message).toMatchObject({ subject: undefined, fromHeader: undefined })
})

test('the From field that local mail gets is kept as its From', async () => {
  const { intake, accept } = acceptorWith()
  await accept('\r\nhello\r\n')
  expect(intake.taken[0]?.message).toMatchObject({ subject: undefined, fromHeader: 'ann@us.example' })
})

describe('a submission with maps', () => {
  const maps = { canonical_maps: { 'ann@us.example': 'ann@new.example', 'bad@us.example': ',' }, alias_maps: { root: 'ops@far.example' } }
  const header = 'From: ann@us.example\r\nTo: root\r\n\r\nhello\r\n'

  test.each([
    ['a local user', USER, 'From: ann@new.example\r\nTo: root@relay.example\r\n'],
    ['a client that is local', { ...CLIENT, local: true }, 'From: ann@new.example\r\nTo: root@relay.example\r\n'],
    ['a client that is not local', CLIENT, 'From: ann@us.example\r\nTo: root\r\n'],
  ])('of %s has its envelope rewritten, and its header when the mail is local', async (_who, client, expected) => {
    const { intake, accept } = acceptorWith({}, maps)
    const recipients = [{ address: 'root@relay.example' }]
    await accept(header, { client, envelope: { sender: 'ann@us.example', recipients } })
    const [taken] = intake.taken
    expect(taken?.message.sender).toBe('ann@new.example')
    expect(taken?.recipients).toEqual([{ address: 'ops@far.example', orcpt: 'rfc822;root@relay.example' }])
    expect(taken?.text).toContain(expected)
  })

  test.each([
    ['envelope', 'bad@us.example', header],
    ['header', 'ann@us.example', header.replace('To: root', 'To: bad@us.example')],
  ])('whose %s has an address with a failing lookup is refused for now, with one line in the log', async (_where, sender, content) => {
    const { intake, accept, seen } = acceptorWith({}, maps)
    const refused = await accept(content, { envelope: { ...ENVELOPE, sender } })
    expect(refused).toEqual({ kind: 'refused', reply: { code: 451, status: '4.3.0', text: 'Error: address lookup failed' } })
    expect(intake.taken).toEqual([])
    expect(seen).toMatchObject([
      { kind: 'note', level: 'error', text: expect.stringMatching(/: message not accepted, try again later: canonical_maps: /) },
    ])
  })
})

describe('a local submission', () => {
  test('gets a Received field with its user, and missing header fields', async () => {
    const { intake, accept } = acceptorWith()
    const accepted = await accept('Subject: x\r\n\r\nhello\r\n')
    expect(accepted).toEqual({ kind: 'queued', queueId: '4dhRlh0000z1' })
    expect(intake.taken[0]?.text).toBe(
      'Received: by relay.example (Deferd, from userid 1000)\r\n\tid 4dhRlh0000z1; Thu, 01 Jan 2026 01:30:00 +0130 (XYZ)\r\n' +
        'Subject: x\r\nMessage-Id: <4dhRlh0000z1@relay.example>\r\nDate: Thu, 01 Jan 2026 01:30:00 +0130 (XYZ)\r\n' +
        'From: ann@us.example\r\n\r\nhello\r\n',
    )
    expect(intake.taken[0]).toMatchObject({ client: null, uid: 1000, recipients: ENVELOPE.recipients })
  })

  test('keeps the header fields it has', async () => {
    const { intake, accept } = acceptorWith()
    const content = 'FROM: x@y.example\r\nmessage-id: <1@y.example>\r\n (a comment)\r\nDate: today\r\n\r\n'
    await accept(content)
    expect(intake.taken[0]?.original).toBe(content)
    expect(intake.taken[0]?.message.messageId).toBe('<1@y.example> (a comment)')
  })

  test('that is resent gets Resent- fields', async () => {
    const { intake, accept } = acceptorWith()
    await accept('Resent-To: c@d.example\r\nResent-From: ann@us.example\r\nResent-Bcc: eve@d.example\r\nSubject: x\r\n\r\n')
    expect(intake.taken[0]?.original).toBe(
      'Resent-To: c@d.example\r\nResent-From: ann@us.example\r\nSubject: x\r\n' +
        'Resent-Message-Id: <4dhRlh0000z1@relay.example>\r\nResent-Date: Thu, 01 Jan 2026 01:30:00 +0130 (XYZ)\r\n\r\n',
    )
  })

  test('without a sender is from MAILER-DAEMON', async () => {
    const { intake, accept } = acceptorWith({ myorigin: 'us.example' })
    await accept('Subject: x\r\n\r\n', { envelope: { ...ENVELOPE, sender: '' } })
    expect(intake.taken[0]?.original).toContain('\r\nFrom: MAILER-DAEMON\r\n')
  })

  test('that cannot be read is not queued, and the caller gets the error', async () => {
    const { intake, acceptor } = acceptorWith()
    async function* broken() {
      yield Buffer.alloc(400_000, 'x')
      throw new Error('the disk is gone')
    }
    await expect(acceptor.accept({ envelope: ENVELOPE, client: USER, content: broken() })).rejects.toThrow('the disk is gone')
    expect([intake.taken, intake.staged.size]).toEqual([[], 0])
    // Chunks on their way to the store are removed after they have arrived there.
    const stage = intake.stage.bind(intake)
    intake.stage = (...chunks) => eventLoopTurn().then(() => stage(...chunks))
    await expect(acceptor.accept({ envelope: ENVELOPE, client: USER, content: broken() })).rejects.toThrow('the disk is gone')
    expect([intake.mostHeld, intake.unstaged.length, intake.staged.size]).toEqual([6, 2, 0])
  })

  test('whose last chunks cannot be stored is refused, although the rest could be', async () => {
    const { intake, acceptor } = acceptorWith()
    intake.stage = () => eventLoopTurn().then(() => Promise.reject(new StoreUnavailable('the disk is full')))
    const refused = await acceptor.accept({ envelope: ENVELOPE, client: USER, content: [Buffer.alloc(400_000, 'x')] })
    expect(refused).toMatchObject({ kind: 'refused', reply: { code: 451 } })
    expect(intake.taken).toEqual([])
  })
})

describe('a message from another host', () => {
  test('gets a Received field only', async () => {
    const { intake, accept } = acceptorWith()
    await accept('Return-Path: <x>\r\nContent-Length: 3\r\nX: y\r\nBCC: z\r\n\r\nhi\r\n', { client: CLIENT })
    expect(intake.taken[0]?.text).toBe(
      'Received: from unknown (unknown [IPv6:2001:db8::1])\r\n\tby relay.example (Deferd) with SMTP id 4dhRlh0000z1\r\n' +
        '\tfor <bob@far.example>; Thu, 01 Jan 2026 01:30:00 +0130 (XYZ)\r\nX: y\r\n\r\nhi\r\n',
    )
    expect(intake.taken[0]?.message.size).toBe(intake.taken[0]?.text.length)
  })

  test('does not depend on segmentation', async () => {
    const content = Buffer.from('From x\r\n>From y\r\nBcc: a,\r\n b\r\nX:\r\n y\r\nReceived: z\r\nnot a field\r\n.\r\n')
    const { intake, acceptor } = acceptorWith()
    for (const { name, packets } of segmentations(content)) {
      await acceptor.accept({ envelope: ENVELOPE, client: CLIENT, content: packets })
      expect({ name, kept: intake.taken.at(-1)?.original }).toEqual({
        name,
        kept: 'X-Mailbox-Line: From x\r\nX-Mailbox-Line: >From y\r\nX:\r\n y\r\nReceived: z\r\n\r\nnot a field\r\n.\r\n',
      })
    }
  })
})

describe('long content', () => {
  test.each([CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES * 4, CHUNK_BYTES * 4 + 1, CHUNK_BYTES * 5, 1_000_003])(
    'of %i bytes is kept complete',
    async (length) => {
      const { intake, acceptor } = acceptorWith()
      const content = Buffer.alloc(length, 'abcdefghij\r\n')
      content.write('\r\n')
      const packets = cutAt(content, [1, 2, 3, 70_000, 70_001, 200_000, 500_000])
      await acceptor.accept({ envelope: ENVELOPE, client: CLIENT, content: packets })
      const [taken] = intake.taken
      expect(taken?.original).toBe(content.toString('latin1'))
      expect(taken?.message.size).toBe(taken?.text.length)
      const parts = [...(intake.staged.get(1) ?? []), ...(taken?.content ?? [])]
      expect(parts.slice(0, -1).every((part) => part.byteLength === CHUNK_BYTES)).toBe(true)
      expect(intake.staged.size).toBe(length >= CHUNK_BYTES * 5 ? 1 : 0)
    },
  )

  test('of 300 MB is held a few chunks at a time, and is not read faster than it is staged', async () => {
    const { intake, acceptor } = acceptorWith({ message_size_limit: 0 })
    let staged = 0
    let staging = 0
    intake.stage = async (_, from, chunks) => {
      expect(from).toBe(staged)
      expect(chunks.length).toBeLessThanOrEqual(5)
      staging++
      await eventLoopTurn()
      staging--
      staged += chunks.length
    }
    const packet = Buffer.alloc(CHUNK_BYTES, `${'x'.repeat(62)}\r\n`)
    let read = 0
    function* content() {
      yield Buffer.from('Subject: x\r\n\r\n')
      for (; read < 300_000_000; read += packet.length) {
        expect(staging).toBeLessThanOrEqual(1)
        expect(read - staged * CHUNK_BYTES).toBeLessThanOrEqual(10 * CHUNK_BYTES)
        yield packet
      }
    }
    expect(await acceptor.accept({ envelope: ENVELOPE, client: CLIENT, content: content() })).toMatchObject({ kind: 'queued' })
    expect(staged).toBeGreaterThan(4500)
    expect(intake.taken[0]?.message.size).toBeGreaterThan(300_000_000)
    expect(intake.taken[0]?.content.length).toBeLessThanOrEqual(5)
  })
})
