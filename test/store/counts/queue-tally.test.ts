import { expect, test } from 'vitest'
import { completeTally, EMPTY_TALLY, Tally, type QueueTally, type Share } from '../../../src/store/counts/queue-tally.ts'
import { mulberry32 } from '../../../src/system/random.ts'

/** Keys of these tests: a queue, and destinations with their waiting recipients, which are all leased in the active queue. */
function shareOf(key: string): Share {
  const [queue = '', ...places] = key.split(' ')
  const waiting = new Map(places.map((place) => [place.split('=')[0] ?? '', Number(place.split('=')[1])]))
  const [mail, none] = [queue as Share['queue'], new Map<string, number>()]
  const counts = mail === 'active' ? { waiting: none, leased: waiting } : { waiting, leased: none }
  return { queue: mail, recipients: sum(waiting.values()), ...counts, class: '' }
}

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((total, n) => total + n, 0)

const NONE: ReadonlySet<string> = new Set()

test('a message counts once, as it was put last, until it is removed', () => {
  const tally = new Tally(shareOf)
  tally.put(7, 5_999, 'active a.example=1')
  tally.put(7, 5_999, 'deferred a.example=2 b.example=1')
  tally.put(8, 9_000, 'deferred b.example=4')
  expect(tally.report(NONE, 10)).toEqual({
    trash: { messages: 0, recipients: 0 },
    queues: [{ queue: 'deferred', messages: 2, recipients: 7, oldestArrival: 5_000 }],
    classes: [],
    waiting: [
      { destination: 'b.example', recipients: 5, leased: 0, scheduled: 0 },
      { destination: 'a.example', recipients: 2, leased: 0, scheduled: 0 },
    ],
  })
  tally.remove(7)
  tally.remove(7)
  tally.remove(9)
  expect(tally.report(NONE, 10)).toEqual({
    trash: { messages: 0, recipients: 0 },
    queues: [{ queue: 'deferred', messages: 1, recipients: 4, oldestArrival: 9_000 }],
    waiting: [{ destination: 'b.example', recipients: 4, leased: 0, scheduled: 0 }],
    classes: [],
  })
  expect([tally.recipientsOf(7), tally.recipientsOf(8)]).toEqual([0, 4])
})

test('of the waiting recipients of a destination, those of scheduled mail are counted apart', () => {
  const tally = new Tally(shareOf)
  tally.put(1, 0, 'scheduled a.example=3')
  tally.put(2, 0, 'deferred a.example=2 b.example=1')
  expect(tally.report(NONE, 10).waiting).toEqual([
    { destination: 'a.example', recipients: 5, leased: 0, scheduled: 3 },
    { destination: 'b.example', recipients: 1, leased: 0, scheduled: 0 },
  ])
  tally.put(1, 0, 'deferred a.example=3')
  expect(tally.report(NONE, 1).waiting).toEqual([{ destination: 'a.example', recipients: 5, leased: 0, scheduled: 0 }])
})

test('waiting recipients are counted by class', () => {
  const tally = new Tally((key) => ({ ...shareOf(key), class: key.startsWith('hold') ? '' : 'bulk' }))
  tally.put(1, 0, 'deferred a.example=2 b.example=1')
  tally.put(2, 0, 'deferred a.example=4')
  tally.put(3, 0, 'hold a.example=1')
  expect(tally.report(NONE, 0).classes).toEqual([{ class: 'bulk', recipients: 7 }])
  tally.remove(2)
  expect(tally.report(NONE, 0).classes).toEqual([{ class: 'bulk', recipients: 3 }])
  tally.remove(1)
  expect(tally.report(NONE, 0).classes).toEqual([])
})

test('untried mail is incoming, and deferred while one of its destinations is closed', () => {
  const tally = new Tally(shareOf)
  tally.put(1, 0, 'untried a.example=1')
  tally.put(2, 0, 'untried a.example=1 b.example=1')
  tally.put(3, 0, 'deferred c.example=1')
  const queues = (closed: ReadonlySet<string>) => Object.fromEntries(tally.report(closed, 0).queues.map((one) => [one.queue, one.messages]))
  expect(tally.hasUntried).toBe(true)
  expect(queues(NONE)).toEqual({ incoming: 2, deferred: 1 })
  expect(queues(new Set(['b.example']))).toEqual({ incoming: 1, deferred: 2 })
  expect(queues(new Set(['a.example', 'x.example']))).toEqual({ deferred: 3 })
})

test('only the largest destinations are reported', () => {
  const tally = new Tally(shareOf)
  for (let n = 1; n <= 100; n++) tally.put(n, 0, `deferred d${n}.example=${(n * 37) % 101}`)
  const sizes = tally.report(NONE, 3).waiting.map(({ recipients }) => recipients)
  expect(sizes).toEqual([100, 99, 98])
})

test('destinations with mail in the active queue alone are last', () => {
  const tally = new Tally(shareOf)
  tally.put(1, 0, 'active a.example=7 b.example=2 c.example=9')
  tally.put(2, 0, 'deferred b.example=1')
  const counts = (most: number) =>
    tally.report(NONE, most).waiting.map(({ destination, recipients, leased }) => [destination, recipients, leased])
  const all = [
    ['b.example', 1, 2],
    ['c.example', 0, 9],
    ['a.example', 0, 7],
  ]
  for (const most of [0, 1, 2, 3, 9]) expect(counts(most)).toEqual(all.slice(0, most))
})

test('after random changes the counts are those of what is left', () => {
  const draw = mulberry32(5)
  const any = (most: number) => Math.floor(draw() * most)
  const tally = new Tally(shareOf)
  const kept = new Map<number, { readonly arrivedAt: number; readonly key: string }>()
  for (let step = 0; step < 5_000; step++) {
    const id = any(3_000) * (any(2) + 1)
    if (any(3) === 0) {
      tally.remove(id)
      kept.delete(id)
    } else {
      const one = { arrivedAt: any(100_000), key: `${['active', 'scheduled', 'deferred'][any(3)]} d${any(9)}.example=${1 + any(4)}` }
      tally.put(id, one.arrivedAt, one.key)
      kept.set(id, one)
    }
    if (step % 500 === 0) expect(sorted(tally.report(NONE, 100))).toEqual(sorted(countedAnew(kept)))
  }
  for (const id of kept.keys()) tally.remove(id)
  expect(tally.report(NONE, 100)).toEqual({ queues: [], trash: { messages: 0, recipients: 0 }, waiting: [], classes: [] })
})

function countedAnew(kept: ReadonlyMap<number, { readonly arrivedAt: number; readonly key: string }>): Counted {
  const all = [...kept.values()].map(({ arrivedAt, key }) => ({ arrivedAt, ...shareOf(key) }))
  const queues = [...Map.groupBy(all, ({ queue }) => queue)].map(([queue, those]) => ({
    queue: queue as 'active',
    messages: those.length,
    recipients: sum(those.map(({ recipients }) => recipients)),
    oldestArrival: Math.floor(Math.min(...those.map(({ arrivedAt }) => arrivedAt)) / 1_000) * 1_000,
  }))
  const waiting = [
    ...Map.groupBy(
      all.flatMap(({ queue, waiting: there, leased: inMemory }) => [
        ...Array.from(there, ([name, recipients]) => ({ name, recipients, leased: 0, queue })),
        ...Array.from(inMemory, ([name, leased]) => ({ name, recipients: 0, leased, queue })),
      ]),
      ({ name }) => name,
    ),
  ].map(([destination, there]) => ({
    destination,
    recipients: sum(there.map(({ recipients }) => recipients)),
    leased: sum(there.map(({ leased }) => leased)),
    scheduled: sum(there.filter(({ queue }) => queue === 'scheduled').map(({ recipients }) => recipients)),
  }))
  return { queues, waiting }
}

type Counted = Pick<QueueTally, 'queues' | 'waiting'>

const sorted = ({ queues, waiting }: Counted) => ({
  queues: queues.toSorted((a, b) => (a.queue < b.queue ? -1 : 1)),
  waiting: waiting.toSorted((a, b) => (a.destination < b.destination ? -1 : 1)),
})

test('a tally that is not complete is asked for again', async () => {
  const answers: (QueueTally | null)[] = [null, null, EMPTY_TALLY]
  expect(await completeTally(async () => answers.shift() ?? null)).toEqual(EMPTY_TALLY)
  expect(answers).toEqual([])
})
