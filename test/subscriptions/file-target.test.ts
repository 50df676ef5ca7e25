import { existsSync, mkdtempSync, readFileSync, renameSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { settingsOf, ALL_EVENTS } from '../../src/outbox/configured-subscriptions.ts'
import type { SentEvent } from '../../src/subscriptions/event-request.ts'
import { sendToFile, sendToStream } from '../../src/subscriptions/file-target.ts'

const event = (seq: number): SentEvent => ({
  id: `evt_1_${seq}`,
  type: 'message.removed',
  timestamp: '',
  data: { queue_id: 'Q1', sender: 'x'.repeat(42) },
})
const LINE = `${JSON.stringify(event(1))}\n`

let path: string
beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), 'deferd-events-')), 'events.jsonl')
})

const send = (seqs: readonly number[], { size = 0, keep = 5 } = {}, to = `file:${path}`) =>
  sendToFile({
    events: seqs.map(event),
    settings: { ...settingsOf(ALL_EVENTS), to, size, keep },
    secrets: [],
    name: 'file',
    signal: new AbortController().signal,
  })

const lines = (file: string): string[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as SentEvent).id)
    : []

describe('a file', () => {
  test('gets one line per event, in order', async () => {
    await send([1, 2])
    expect(await send([3])).toMatchObject({ kind: 'response', code: 200 })
    expect(lines(path)).toEqual(['evt_1_1', 'evt_1_2', 'evt_1_3'])
  })

  test('is replaced above its size, and the old ones are kept up to their number', async () => {
    for (let seq = 1; seq <= 7; seq++) await send([seq], { size: 2 * LINE.length, keep: 2 })
    expect([lines(path), lines(`${path}.1`), lines(`${path}.2`), lines(`${path}.3`)]).toEqual([
      ['evt_1_7'],
      ['evt_1_5', 'evt_1_6'],
      ['evt_1_3', 'evt_1_4'],
      [],
    ])
  })

  test('that another program has renamed is made again', async () => {
    await send([1])
    renameSync(path, `${path}.old`)
    await send([2])
    expect(lines(path)).toEqual(['evt_1_2'])
  })

  test('that cannot be written is a failure with its reason', async () => {
    expect(await send([1], {}, `file:${path}/none`)).toEqual({ kind: 'failed', text: expect.stringContaining('cannot write') as string })
  })
})

test('a stream that fails is a failure with its reason', async () => {
  const answer = await sendToStream(() => Promise.reject(new Error('EPIPE')))({
    events: [event(1)],
    settings: settingsOf(ALL_EVENTS),
    secrets: [],
    name: 'out',
    signal: new AbortController().signal,
  })
  expect(answer).toEqual({ kind: 'failed', text: 'cannot write to standard output: EPIPE' })
})
