/** Header fields that were prepended to a message when it was queued, from the store to the remote server and back in a notice. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { DAY } from '../../src/system/clock.ts'
import { queueIdOf, type Message } from '../../src/mail/message.ts'
import { inChunks } from '../../src/store/chunks.ts'
import { createWorld, type World, type WorldOptions } from '../../src/testkit/index.ts'

const SIGNATURE = 'DKIM-Signature: v=1; d=us.example;\r\n\tb=AuUo\r\nX-Second: ä\r\n'
const folder = mkdtempSync(join(tmpdir(), 'deferd-prepended-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let count = 0

/** Longer than a chunk. */
const CONTENT = `Subject: hi\r\n\r\n${'x'.repeat(70)}\r\n`.concat(`${'y'.repeat(70)}\r\n`.repeat(1_000))

/** Queues a message on hold, as an intake that signs would. */
async function queueSigned({ store, clock }: World, address: string, content = CONTENT): Promise<Message> {
  const id = store.nextId()
  const now = clock.now()
  const message = {
    id,
    createdAt: now,
    arrivedAt: now,
    sender: 'app@us.example',
    size: Buffer.byteLength(SIGNATURE + content),
    prependedHeaders: SIGNATURE,
    contentId: id,
    smtputf8: false,
    bodyType: '8bitmime',
  } as const
  const recipient = { address, destination: address.replace(/.*@/, ''), dueAt: now, expiresAt: now + DAY, leased: false }
  await store.enqueue({ message, recipients: [recipient], content: inChunks(Buffer.from(content)), hold: true })
  return message
}

describe.each([
  ['in memory', () => 'memory' as const],
  ['in a file', () => ({ directory: mkdtempSync(join(folder, `${count++}-`)) })],
])('with a queue %s', (_name, store: () => NonNullable<WorldOptions['store']>) => {
  test('the remote server receives them before the content, after a crash too, with the size of both', async () => {
    await using world = await createWorld({ store: store() })
    const message = await queueSigned(world, 'ann@far.example')
    await world.crash()
    await world.operate('release')
    await world.settle()
    const [mail] = world.mailbox('ann@far.example').mails()
    expect(mail?.content).toBe(SIGNATURE + CONTENT)
    expect(mailCommands(world)).toEqual([`MAIL FROM:<app@us.example> SIZE=${message.size} BODY=8BITMIME`])
  })

  test('a requeued message keeps them', async () => {
    await using world = await createWorld({ store: store() })
    await queueSigned(world, 'ann@far.example')
    await world.operate('requeue')
    await world.settle()
    expect(world.mailbox('ann@far.example').mails()).toMatchObject([{ content: SIGNATURE + CONTENT }])
  })

  test('a message without content of its own is sent', async () => {
    await using world = await createWorld({ store: store() })
    await queueSigned(world, 'ann@far.example', '')
    await world.operate('release')
    await world.settle()
    expect(world.mailbox('ann@far.example').mails()).toMatchObject([{ content: SIGNATURE }])
  })

  test('a notice returns them with the original, and history forgets them', async () => {
    await using world = await createWorld({ store: store() })
    world.destination('picky.example').rejects('*', '550 5.1.1 no such user')
    const { prependedHeaders: _, ...gone } = await queueSigned(world, 'bob@picky.example', 'Subject: hi\r\n\r\nhello\r\n')
    await world.operate('release')
    await world.settle()
    const [notice] = world.mailbox('app@us.example').notices()
    expect(notice?.original).toBe(`Return-Path: <app@us.example>\r\n${SIGNATURE}Subject: hi\r\n\r\nhello\r\n`)
    expect((await world.reader.details(queueIdOf(gone)))?.message).toEqual(gone)
  })
})

/** The MAIL commands that remote servers received. */
const mailCommands = (world: World): readonly string[] =>
  world.history().events.flatMap((entry) => {
    const command = entry.where === 'remote' && entry.event.event === 'reply' ? entry.event.command : undefined
    return command?.startsWith('MAIL') === true ? [command] : []
  })
