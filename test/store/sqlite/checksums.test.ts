import { expect, test } from 'vitest'
import { messageCrc, recipientCrc, type MessageEnvelope } from '../../../src/store/sqlite/file/checksums.ts'
import { columnsBut } from '../../../src/store/stored-message.ts'
import { fromMessage } from '../../../src/store/sqlite/writing/rows.ts'

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
