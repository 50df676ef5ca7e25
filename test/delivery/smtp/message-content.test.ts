import { expect, test } from 'vitest'
import { MessageContent } from '../../../src/delivery/smtp/message-content.ts'
import type { Message } from '../../../src/mail/message.ts'
import { inChunks } from '../../../src/store/chunks.ts'
import { ContentUnreadable } from '../../../src/store/errors.ts'
import { StoreUnavailable } from '../../../src/store/queue-store.ts'

const messageOf = (text: string, prependedHeaders = ''): Message => ({
  id: 1,
  createdAt: 0,
  arrivedAt: 0,
  sender: '',
  size: Buffer.byteLength(prependedHeaders + text),
  contentId: 1,
  smtputf8: false,
  ...(prependedHeaders === '' ? {} : { prependedHeaders }),
})

/** All chunks until the last, or the reason why there is none. */
async function read(content: MessageContent): Promise<readonly string[]> {
  const texts: string[] = []
  for (;;) {
    const chunk = await content.next()
    if (chunk.kind === 'unreadable') return [...texts, `${chunk.lasting ? 'never' : 'later'}: ${chunk.why}`]
    texts.push(Buffer.from(chunk.bytes).toString())
    if (chunk.last) return texts
  }
}

/** A copy: what the store hands out is released after use. */
const chunkOf = (chunks: readonly Uint8Array[], index: number): Uint8Array | undefined => {
  const chunk = chunks[index]
  return chunk === undefined ? undefined : new Uint8Array(chunk)
}

const LONG = 'x'.repeat(65_536)

test.each(['', 'X-First: ä\r\n'])(
  'a content is read whole, from the store and from memory, behind the header fields %j',
  async (prepended) => {
    for (const [text, expected] of [
      ['', [prepended]],
      ['short', [`${prepended}short`]],
      [`${LONG}rest`, [prepended + LONG, 'rest']],
    ] as const) {
      const message = messageOf(text, prepended)
      const chunks = inChunks(Buffer.from(text))
      expect(await read(new MessageContent(message, async (_, index) => chunkOf(chunks, index)))).toEqual(expected)
      expect(await read(new MessageContent(message, () => Promise.reject(new Error('not asked')), chunks))).toEqual(expected)
    }
  },
)

test('a content of another length than the message is unreadable for ever, a store that cannot answer is not', async () => {
  const message = messageOf('four', 'X: 1\r\n')
  const given = (text: string) => new MessageContent(message, async (_, index) => (index === 0 ? Buffer.from(text) : undefined))
  expect(await read(given('thr'))).toEqual(['X: 1\r\nthr', expect.stringMatching(/^never: .*9 of 10 bytes/)])
  expect(await read(given('fives'))).toEqual([expect.stringMatching(/^never: .*11 of 10 bytes/)])
  const damaged = new MessageContent(message, () => Promise.reject(new ContentUnreadable('part 1 of content 7 is damaged')))
  expect(await read(damaged)).toEqual(['never: cannot read its content: part 1 of content 7 is damaged'])
  const absent = new MessageContent(message, () => Promise.reject(new StoreUnavailable('the disk is full')))
  expect(await read(absent)).toEqual([expect.stringMatching(/^later: /)])
})
