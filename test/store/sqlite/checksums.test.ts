/** Changed bytes in the rows of a message: the message moves to corrupt and is not delivered. */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'
import { queueFile } from '../../../src/store/folder/queue-folder.ts'
import { openInlineStore } from '../../../src/store/sqlite/clients/inline-store.ts'
import { messageCrc, recipientCrc, type MessageEnvelope } from '../../../src/store/sqlite/file/checksums.ts'
import { columnsBut } from '../../../src/store/stored-message.ts'
import { fromMessage } from '../../../src/store/sqlite/writing/rows.ts'
import { claim, deferred, first, LIFETIME, mail, messagesIn, queue, settleOne, T0 } from '../../conformance/mail.ts'
import { folder } from './folders.ts'

/** Flips the lowest bit of the last byte of each occurrence of some bytes in the file; returns their number. */
function flip(directory: string, bytes: Uint8Array): number {
  const file = readFileSync(queueFile(directory))
  let found = 0
  for (let at = file.indexOf(bytes); at >= 0; at = file.indexOf(bytes, at + 1)) {
    const last = at + bytes.byteLength - 1
    file[last] = (file[last] ?? 0) ^ 1
    found++
  }
  writeFileSync(queueFile(directory), file)
  return found
}

/** The six bytes of an integer of 41 bits in a record. */
function inRecord(value: number): Uint8Array {
  const bytes = Buffer.alloc(6)
  bytes.writeUIntBE(value, 0, 6)
  return bytes
}

const EXPIRY = T0 + LIFETIME + 77_777

test.each([
  ['the sender', Buffer.from('lost@us.example')],
  ['a prepended header field', Buffer.from('X-Prepended: yes')],
  ['an address', Buffer.from('eve@far.example')],
  ['the expiry', inRecord(EXPIRY)],
  ['the last reply', Buffer.from('450 4.2.1 Busy as bees')],
])('a message with a changed bit in %s moves to corrupt', async (_, bytes) => {
  const directory = folder()
  const { store } = await openInlineStore({ directory })
  const good = await queue(store)
  const entry = mail(store, { sender: 'lost@us.example', to: [{ address: 'eve@far.example', expiresAt: EXPIRY, leased: true }] })
  await store.enqueue({ ...entry, message: { ...entry.message, prependedHeaders: 'X-Prepended: yes\r\n' } })
  const { id } = entry.message
  const last = { status: '4.2.1', reason: '450 4.2.1 Busy as bees', stage: 'rcpt' } as const
  await settleOne(store, id, deferred(first(id), T0, { last }))
  await store.close()
  const damaged = flip(directory, bytes)
  expect(damaged).toBeGreaterThan(0)
  const told: string[] = []
  const again = await openInlineStore({ directory }, { onQuarantined: ({ why }) => told.push(why) })
  expect(messagesIn((await claim(again.store, T0)).requests)).toEqual([good])
  expect(told).toEqual([expect.stringContaining('does not match its checksum')])
  await again.store.close()
})

test('a message whose row does not match its checksum is not moved to another queue', async () => {
  const directory = folder()
  const { store } = await openInlineStore({ directory })
  const entry = mail(store, { sender: 'lost@us.example', to: [{ address: 'eve@far.example' }] })
  await store.enqueue(entry)
  const good = await queue(store)
  await store.close()
  expect(flip(directory, Buffer.from('lost@us.example'))).toBeGreaterThan(0)
  const { store: again, reader } = await openInlineStore({ directory })
  const target = { identity: 'elsewhere', name: '/srv/new' }
  const round = await again.beginMove({ target, after: 0, through: Number.MAX_SAFE_INTEGER, limit: 64, withNoticesDue: false })
  expect(round.messages.map(({ message }) => message.id)).toEqual([good])
  expect((await again.leaving(9)).map(({ moved }) => moved.message.id)).toEqual([good])
  expect(round.unreadable.map(({ id }) => id)).toEqual([entry.message.id])
  const stays = await reader.list(ANY_MESSAGE, { after: 0, limit: 9 })
  expect(stays.map(({ message }) => message.id)).toEqual([entry.message.id])
  await again.close()
})

const message: MessageEnvelope = fromMessage({
  id: 1,
  createdAt: 2,
  arrivedAt: 3,
  sender: 'a@b.example',
  size: 4,
  contentId: 1,
  smtputf8: false,
})
const recipient = { id: 131_072, destination: 'far.example', address: 'ann@far.example', notify: null, orcpt: null, band: 0, turn: null }

// No delivery depends on these columns.
const COVERED = columnsBut('scheduled', 'subject', 'from_header')

test.each(COVERED)('another value in the column %s of a message changes the checksum', (column) => {
  expect(messageCrc({ ...message, [column]: 7 })).not.toBe(messageCrc({ ...message, [column]: 8 }))
  expect(messageCrc({ ...message, [column]: 7 })).not.toBe(messageCrc(message))
})

test('the share of a message, and the band and turn of a recipient, change the checksum; rows without them keep theirs', () => {
  expect(messageCrc({ ...message, share: 'app' })).not.toBe(messageCrc(message))
  expect(messageCrc({ ...message, share: 'app' })).not.toBe(messageCrc({ ...message, share: 'apps' }))
  const sums = [{}, { band: 1 }, { turn: 0 }, { turn: 1 }, { band: 1, turn: 1 }].map((place) => recipientCrc({ ...recipient, ...place }))
  expect(new Set(sums).size).toBe(sums.length)
  expect(recipientCrc({ ...recipient, band: null })).toBe(sums[0])
})
