/** Progress of long work on a terminal: one line that is rewritten in place. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { countText, ProgressLine } from '../../../src/cli/shell/progress.ts'
import { queue } from '../../conformance/mail.ts'
import { withCommandSocket } from '../../support/command-socket.ts'
import { NOW, Operator } from '../../support/operator.ts'

const ERASE = '\r\u001b[K'

let operator: Operator
beforeEach(() => {
  operator = new Operator()
})
afterEach(() => operator.leave())

const pass = (time: number) => operator.clock.jumpTo(operator.clock.now() + time)

function lineOn(columns: number | null): { line: ProgressLine; written: () => string } {
  let text = ''
  const output = { columns, rows: null, write: async (data: string | Uint8Array) => void (text += String(data)) }
  return { line: new ProgressLine(output, operator.clock), written: () => text }
}

test('the line is shown after half a second, rewritten at most ten times a second, and erased at the end', async () => {
  const { line, written } = lineOn(80)
  for (let done = 0; done <= 1000; done += 50) {
    line.show(`${done}`)
    pass(50)
  }
  await line.finish()
  expect(written()).toBe([500, 600, 700, 800, 900, 1000].map((done) => `${ERASE}${done}`).join('') + ERASE)
})

test('short work and output without a terminal show nothing', async () => {
  const [short, piped] = [lineOn(80), lineOn(null)]
  short.line.show('1')
  pass(1000)
  piped.line.show('1')
  for (const { line } of [short, piped]) await line.finish()
  expect([short.written(), piped.written()]).toEqual(['', ''])
})

test('a line that is longer than the terminal is cut', async () => {
  const { line, written } = lineOn(20)
  pass(1000)
  line.show('deleting: 12,400 of 40,000 (31 %)')
  expect(written()).toBe(`${ERASE}deleting: 12,400 of`)
})

test('a terminal that closes does not stop the work', async () => {
  const line = new ProgressLine({ columns: 80, rows: null, write: () => Promise.reject(new Error('closed')) }, operator.clock)
  pass(1000)
  line.show('1')
  await line.finish()
})

test('counts have the total and the percentage, also when the total has grown', () => {
  expect(countText('deleting', 12_400, 40_000)).toBe('deleting: 12,400 of 40,000 (31 %)')
  expect(countText('deleting', 40_001, 40_000)).toBe('deleting: 40,001 of 40,001 (100 %)')
  expect(countText('counting', 12_400, null)).toBe('counting: 12,400')
})

/** Runs a story beside the owner of a queue of 320 messages, who needs a fifth of a second for each round of 64. */
const besideSlowOwner = (story: () => Promise<void>): Promise<void> =>
  operator.own(async (store) => {
    await Promise.all(Array.from({ length: 320 }, () => queue(store, { at: NOW - 60_000 })))
    const throttle = async () => pass(200)
    await withCommandSocket({ directory: operator.directory, clock: operator.clock, store, throttle }, story)
  })

test.each([
  ['delete', 'deleting', 'deleted'],
  ['hold', 'holding', 'put on hold'],
  ['requeue', 'requeueing', 'requeued'],
  ['expire', 'expiring', 'expired'],
])('queue %s shows its progress on the terminal', async (verb, doing, past) => {
  await besideSlowOwner(async () => {
    const { code, out, err } = await operator.run(['queue', verb, '--all', '--yes'], { columns: 80 })
    expect([code, out]).toEqual([0, `320 messages ${past}\n`])
    const lines = err.split(ERASE)
    expect(lines.slice(1, -1)).not.toEqual([])
    expect([lines[0], lines.at(-1)]).toEqual(['', ''])
    for (const line of lines.slice(1, -1)) {
      const [, done] = new RegExp(`^${doing}: (\\d+) of 320 \\(\\d+ %\\)$`).exec(line) ?? []
      expect(line).toBe(countText(doing, Number(done), 320))
    }
  })
})

test('in a pipe, nothing is written beside the outcome', async () => {
  await besideSlowOwner(async () => {
    expect(await operator.run(['queue', 'delete', '--all'])).toMatchObject({ code: 0, out: '320 messages deleted\n', err: '' })
  })
})
