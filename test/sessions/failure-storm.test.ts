/** Ten thousand failing deliveries: what is kept of their dialogues is bounded, in the store and in memory. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ReplyReader } from '../../src/delivery/reply-reader.ts'
import { SessionRecorder, type SessionRecord } from '../../src/sessions/session-recorder.ts'
import { SessionRecordings } from '../../src/sessions/session-recordings.ts'
import { MINUTE } from '../../src/system/clock.ts'
import { QueueClock } from '../../src/system/queue-clock.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { createWorld } from '../../src/testkit/create-world.ts'
import { collector } from '../support/flat-memory.ts'

const MESSAGES = 10_000
/** Messages between two waits. */
const EACH = 1_000
/** Causes of the replies below. */
const CAUSES = 2
/** Octets of a dialogue by deflate, ten times what one has. */
const LARGEST = 5_000
/** Dialogues in memory, ten times default_process_limit: those of deliveries in progress, and of outcomes that are not committed. */
const IN_MEMORY = 1_000
/** Octets of a dialogue at most: 16 kB, its heading and the line that counts what is left out. */
const DIALOGUE = 16_384 + 400
/** Failures between two counts. */
const SAMPLE = 1_000

const LONG_REFUSAL = Array.from({ length: 60 }, (_, n) => `554${n === 59 ? ' ' : '-'}5.7.1 refused, line ${n} of the policy`).join('\n')

/** Follows all records of sessions by weak references, and counts the octets of those to which something still refers. */
class RecordsInMemory {
  readonly #collect = collector()
  /** Each returns the text of a record that is still in memory. */
  readonly #texts: (() => string | undefined)[] = []
  #made = 0
  most = { texts: 0, bytes: 0 }

  /** Returns a function that ends this. */
  watch(): () => void {
    // oxlint-disable-next-line unbound-method -- it is called with its receiver
    const { begin } = SessionRecordings.prototype
    const began = (recorder: SessionRecorder): void => this.#began(recorder)
    SessionRecordings.prototype.begin = function beginWatched(...parts) {
      const recorder = begin.apply(this, parts)
      if (recorder !== null) began(recorder)
      return recorder
    }
    return () => void (SessionRecordings.prototype.begin = begin)
  }

  #began(recorder: SessionRecorder): void {
    const reference = new WeakRef(recorder)
    this.#texts.push(() => {
      const found = reference.deref()
      return found === undefined ? undefined : textOf(found)
    })
    recorder.record = () => {
      const record = new WeakRef(SessionRecorder.prototype.record.call(recorder))
      this.#texts.push(() => record.deref()?.text)
      // Objects that this task has used are in memory until it ends.
      if (++this.#made % SAMPLE === 0) setImmediate(() => this.#count())
      return record.deref() as SessionRecord
    }
  }

  #count(): void {
    this.#collect()
    const texts = this.#texts.flatMap((text) => text() ?? [])
    const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
    this.most = { texts: Math.max(this.most.texts, texts.length), bytes: Math.max(this.most.bytes, bytes) }
  }
}

const textOf = (recorder: SessionRecorder): string => SessionRecorder.prototype.record.call(recorder).text

let directory = ''
beforeAll(() => void (directory = mkdtempSync(join(tmpdir(), 'deferd-storm-'))))
afterAll(() => rmSync(directory, { recursive: true }))

test(
  'of ten thousand failures, one dialogue for a cause and minute is stored, and those of open sessions are in memory',
  {
    timeout: 1_200_000,
  },
  async () => {
    await using world = await createWorld({ store: { directory } })
    const [refused, unknown] = [world.destination('far.example'), world.destination('other.example')]
    refused.fails({ at: 'end-of-data', reply: LONG_REFUSAL, delay: '1s' })
    unknown.rejects()
    const memory = new RecordsInMemory()
    const leave = memory.watch()
    const began = world.now()
    try {
      for (let n = 0; n < MESSAGES; n++) {
        await world.submit({ from: '', to: `ann${n}@${n % 2 === 0 ? 'far' : 'other'}.example` })
        if ((n + 1) % EACH === 0) await world.advance('1m')
      }
    } finally {
      leave()
    }
    const minutes = Math.ceil((world.now() - began) / MINUTE) + 1
    const { count, bytes } = await world.reader.records.sessions.use()
    expect(count).toBeGreaterThanOrEqual(CAUSES)
    expect(count).toBeLessThanOrEqual(CAUSES * minutes)
    expect(bytes).toBeLessThanOrEqual(count * LARGEST)
    expect(await world.isEmpty()).toBe(true)
    expect(memory.most.texts).toBeGreaterThan(0)
    expect(memory.most.texts).toBeLessThanOrEqual(IN_MEMORY)
    expect(memory.most.bytes).toBeLessThanOrEqual(IN_MEMORY * DIALOGUE)
  },
)

/** Sessions that are recorded at the same time. */
const OPEN = 20
/** Octets of memory of a record at most, whatever the host says: lines have at least 12 octets, and an object each. */
const RECORD = 400_000

test.each([
  ['replies of one very long line', 60, () => `550 ${'x'.repeat(65_000)}\r\n`],
  ['replies of many short lines', 3, () => `${'550-no\r\n'.repeat(7_000)}550 no\r\n`],
])('a session with %s has a bounded record', (_, replies, reply) => {
  const collect = collector()
  const heap = (): number => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const recordings = new SessionRecordings({ clock: new QueueClock(new VirtualClock()), keepsDeliveries: () => true })
  const before = heap()
  const recorders = Array.from({ length: OPEN }, (_session, n) => {
    const recorder = recordings.begin({ protocol: 'smtp', peer: `mx${n}.far.example`, direction: 'to' }, {})
    const reader = new ReplyReader()
    for (let said = 0; said < replies; said++) {
      reader.feed(Buffer.from(reply()))
      const reading = reader.next()
      if (reading?.kind === 'reply') recorder?.server(reading.lines)
    }
    return recorder
  })
  const used = heap() - before
  expect(recorders.map((recorder) => Buffer.byteLength(recorder?.record().text ?? ''))).toEqual(
    Array.from({ length: OPEN }, () => expect.toSatisfy((size: number) => size > 15_000 && size <= DIALOGUE) as number),
  )
  expect(used).toBeLessThanOrEqual(OPEN * RECORD)
})
