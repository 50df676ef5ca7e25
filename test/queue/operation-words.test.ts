/** Operations as arguments of commands: pasted into a shell, they select the same mail. */
import { execFileSync } from 'node:child_process'
import { Command } from 'commander'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { givenConditions, withFilters, type FilterOptions } from '../../src/cli/queue-client/filters.ts'
import { isRange } from '../../src/mail/message-times.ts'
import type { AskedOperation } from '../../src/queue/operation-request.ts'
import { operationText, operationWords } from '../../src/queue/operation-words.ts'
import { ANY_MESSAGE, filterOf, isFiltered, type QueueFilter } from '../../src/store/message-conditions.ts'
import { DAY, HOUR, MINUTE, seconds } from '../../src/system/clock.ts'
import { WallView } from '../../src/system/wall-view.ts'

const NOW = 1_767_225_600_000
/** The wall clock is a minute behind that of the queue. */
const MOMENT = { now: NOW, wall: new WallView(() => NOW, MINUTE) }

const deleting = (more: Partial<AskedOperation>): AskedOperation => ({
  operation: 'delete',
  selection: { kind: 'filter', filter: ANY_MESSAGE, limit: null },
  queues: null,
  purge: false,
  release: null,
  class: null,
  ...more,
})

const filtered = (filter: Partial<QueueFilter>, limit: number | null = null) =>
  ({ kind: 'filter', filter: { ...ANY_MESSAGE, ...filter }, limit }) as const

const text = (more: Partial<AskedOperation>): string => operationText(deleting(more), MOMENT)

test.each<readonly [Partial<AskedOperation>, string]>([
  [{}, '--all'],
  [{ purge: true, selection: filtered({}, 3) }, '--all --limit=3 --now'],
  [{ selection: filtered({ sender: '', destination: '*.example' }) }, "--sender='<>' --destination='*.example'"],
  [{ selection: filtered({ olderThan: NOW - 2 * HOUR - 12, youngerThan: NOW - DAY }) }, '--older-than=2h --younger-than=1d'],
  [{ selection: filtered({ olderThan: NOW + seconds(5) }) }, '--older-than=0s'],
  [
    { selection: filtered({ arrivedAfter: NOW - HOUR, arrivedBefore: NOW + 500, expiresWithin: NOW + HOUR + 3 }) },
    '--arrived-after=2025-12-31T22:59:00Z --arrived-before=2025-12-31T23:59:00.500Z --expires-within=1h',
  ],
  [{ selection: filtered({ reply: `it's $HOME; \`rm\`!`, attemptsOver: 0 }) }, `--attempts-over=0 --reply='it'\\''s $HOME; \`rm\`!'`],
  [{ selection: filtered({ reply: 'a\nb\u001b[2J\u202e' }) }, String.raw`--reply=$'a\u000ab\u001b[2J\u202e'`],
  [{ selection: filtered({ queueId: '4SVLCh0sf8z7Qhl' }), purge: true }, '--now 4SVLCh0sf8z7Qhl'],
  [{ selection: { kind: 'ids', ids: ['a b', '--all'] }, purge: true }, "--now -- 'a b' --all"],
  [{ selection: filtered({ queue: 'hold' }) }, '--queue=hold'],
  [{ selection: filtered({ queue: 'hold' }), queues: ['deferred'] }, "--queue=''"],
  // A limit that the operation has by itself is left out.
  [{ queues: ['incoming', 'active', 'deferred', 'scheduled', 'hold'] }, '--all'],
  [{ operation: 'release', queues: ['hold'] }, '--all'],
  [{ operation: 'hold', queues: ['incoming', 'active', 'deferred', 'scheduled'] }, '--all'],
  [{ operation: 'restore', selection: filtered({ queue: 'trash' }) }, '--all'],
  [{ queues: ['deferred'] }, '--all --queue=deferred'],
  [{ queues: ['incoming', 'active'] }, '--all --queue=incoming,active'],
  [{ queues: ['incoming', 'active', 'deferred', 'hold', 'corrupt'] }, '--all --queue=incoming,active,deferred,hold,corrupt'],
])('%j is %s', (more, words) => expect(text(more)).toBe(words))

test('a text has at most 20 ids, and the number of the others as a comment of the shell', () => {
  const ids = Array.from({ length: 1_000 }, (_, n) => `id${n}`)
  expect(text({ selection: { kind: 'ids', ids } })).toBe(`${ids.slice(0, 20).join(' ')} # and 980 more`)
  expect(operationWords(deleting({ selection: { kind: 'ids', ids } }), MOMENT)).toEqual(ids)
})

/** The arguments that a shell passes on for each text. */
function shellArguments(texts: readonly string[]): readonly (readonly string[])[] {
  const script = texts.map((line) => `printf '%s\\0' ${line}\nprintf '\\0'`).join('\n')
  const env = { ...process.env, LC_ALL: 'C.UTF-8' }
  const lines = execFileSync('bash', ['--norc', '-s'], { input: script, encoding: 'utf8', env }).split('\0\0')
  return lines.slice(0, -1).map((line) => line.split('\0'))
}

/** The filter of a command with these arguments. */
function filterIn(argv: readonly string[]): { readonly filter: QueueFilter; readonly limit: number | null } {
  const command = withFilters(new Command().exitOverride()).option('--all').option('--now').argument('[id...]')
  command.parse(argv, { from: 'user' })
  const { limit = null, ...options } = command.opts<FilterOptions & { readonly all?: true; readonly now?: true }>()
  const [queueId = null] = command.args
  return { filter: { ...filterOf(givenConditions(options), MOMENT), queueId }, limit }
}

test('bash and the command read the filter that was carried out', () => {
  // A NUL is in no argument, and a lone surrogate in no text of JSON that a client sends as UTF-8.
  const anything = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }).filter((value) => !value.includes('\0'))
  const hostile = fc.oneof(
    anything,
    fc.constantFrom('--all', '-x', "'", '$(touch x)', '`x`', '!!', '\\', '\n', '\u202e', '~', '#', '*', '= '),
  )
  const given = fc.record(
    {
      sender: fc.oneof(hostile, fc.constant('<>')),
      recipient: hostile,
      destination: hostile,
      queue: fc.constantFrom('deferred', 'hold', 'corrupt' as const),
      older_than: fc.integer({ min: 1, max: 10_000_000 }).map(seconds),
      younger_than: fc.integer({ min: 0, max: 999 }),
      arrived_after: fc.integer({ min: 0, max: NOW }),
      arrived_before: fc.integer({ min: 0, max: 200_000_000_000 }).map(seconds),
      expires_within: fc.integer({ min: 1, max: 10_000_000 }).map(seconds),
      attempts_over: fc.nat(1_000),
      status: fc.constantFrom('4.*', '4.7.0'),
      reply: hostile,
    },
    { requiredKeys: [] },
  )
  const ordered = given.filter(({ arrived_after: after, arrived_before: before }) => isRange(after, before))
  const wanted = fc.sample(fc.tuple(ordered, fc.option(fc.integer({ min: 1, max: 1_000 }))), { numRuns: 300, seed: 1 })
  const operations = wanted.map(([conditions, limit]) => {
    const filter = filterOf(conditions, MOMENT)
    return deleting({ selection: { kind: 'filter', filter, limit }, operation: 'delete' })
  })
  const read = shellArguments(operations.map((operation) => operationText(operation, MOMENT)))
  expect(read).toHaveLength(operations.length)
  for (const [n, { selection }] of operations.entries()) {
    expect(filterIn(read[n] ?? [])).toEqual({ ...selection, kind: undefined })
    expect(read[n]?.includes('--all')).toBe(selection.kind === 'filter' && !isFiltered(selection.filter))
  }
})
