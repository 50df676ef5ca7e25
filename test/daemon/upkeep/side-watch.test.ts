/** Reader and writer of the store that do not answer: reports, and the end of a stop. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nextLook, SideWatch, type Look } from '../../../src/daemon/upkeep/side-watch.ts'
import type { SideName } from '../../../src/store/store-health.ts'
import { SECOND } from '../../../src/system/clock.ts'
import { Events } from '../../../src/telemetry/events.ts'
import { TimeDriver } from '../../../src/testkit/virtual/time-driver.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'

/** A side whose calls a test makes and answers. */
class ScriptedSide {
  made = 0
  answered = 0
  ended = false
  readonly #canEnd: boolean
  #onEnd: () => void = () => undefined

  constructor(canEnd = true) {
    this.#canEnd = canEnd
  }

  get isWaiting(): boolean {
    return !this.ended && this.made > this.answered
  }

  /** Resolves when the side is ended. */
  readonly gone = new Promise<void>((resolve) => (this.#onEnd = resolve))

  async abandon(): Promise<boolean> {
    this.ended = true
    this.#onEnd()
    return this.#canEnd
  }
}

function watched({ canEnd = true } = {}) {
  const clock = new VirtualClock({ startsAt: 0 })
  const driver = new TimeDriver(clock, {})
  const events = new Events(() => clock.now())
  const notes: string[] = []
  events.listen((event) => event.kind === 'note' && notes.push(`${clock.monotonic() / SECOND} ${event.level}: ${event.text}`))
  const sides = { reader: new ScriptedSide(canEnd), writer: new ScriptedSide() }
  const watch = new SideWatch({ clock, events, sides: () => sides })
  watch.start()
  const healthOf = (name: SideName): string => {
    try {
      watch.assertAnswers(name)
      return 'ok'
    } catch (error) {
      return String(error)
    }
  }
  return { clock, sides, watch, notes, healthOf, advance: (seconds: number) => driver.runUntil(clock.now() + seconds * SECOND) }
}

test('a side that answers no call for 10 s is reported once, and once when it answers again', async () => {
  const { sides, watch, notes, healthOf, advance } = watched()
  sides.reader.made = 3
  await advance(10)
  expect([watch.silence('reader'), healthOf('reader'), notes]).toEqual([9 * SECOND, 'ok', []])
  await advance(10)
  expect([healthOf('reader'), healthOf('writer')]).toEqual(['Error: the reader of the store has not answered for 19 s', 'ok'])
  sides.reader.answered = 1
  await advance(1)
  expect([watch.silence('reader'), healthOf('reader')]).toEqual([0, 'ok'])
  sides.reader.answered = 3
  sides.writer.made = 1
  await advance(60)
  expect(notes).toEqual([
    '11 error: the reader of the store has not answered for 10 s: the API, the page and operations wait for it',
    '21 info: the reader of the store answers again, after 19 s',
    '32 error: the writer of the store has not answered for 10 s: mail is neither accepted nor delivered',
  ])
  watch.stop()
})

test('a side that answers, however slowly, or has no call, is not silent', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ made: fc.nat(2), answered: fc.nat(2) }), { maxLength: 40 }), (seconds) => {
      let last: Look | undefined
      let [made, answered, expected, waited] = [0, 0, 0, false]
      for (const one of seconds) {
        const before = answered
        made += one.made
        answered = Math.min(made, answered + one.answered)
        const isWaiting = made > answered
        expected = isWaiting && waited && answered === before ? expected + 1 : 0
        waited = isWaiting
        last = nextLook(last, { answered, isWaiting })
        expect(last.silence).toBe(expected)
      }
    }),
    { numRuns: 200 },
  )
})

test('a stop ends the sides that do not answer after 8.5 s, and no others', async () => {
  const { clock, sides, watch, notes, advance } = watched()
  sides.writer.made = 1
  await advance(5)
  sides.reader.made = 1
  sides.reader.answered = 1
  const stopped = watch.during(sides.writer.gone)
  const outcome = stopped.catch((error: unknown) => error)
  await advance(8)
  expect(sides.writer.ended).toBe(false)
  await advance(1)
  expect(await outcome).toMatchObject({
    name: 'StoreSilent',
    exitCode: 70,
    isStuck: false,
    message: expect.stringContaining('the writer of'),
  })
  expect([sides.reader.ended, clock.pending]).toEqual([false, 0])
  expect(notes.at(-1)).toBe(
    '13.5 error: the writer of the store has not answered for 12 s: it is ended, since the daemon stops; mail in transfer may be delivered again',
  )
})

test('a stop that ends by itself ends no side, and one in a system call is told apart', async () => {
  const { sides, watch, advance } = watched({ canEnd: false })
  await watch.during(Promise.resolve())
  expect([sides.reader.ended, sides.writer.ended]).toEqual([false, false])
  const again = watched({ canEnd: false })
  again.sides.reader.made = 1
  const outcome = again.watch.during(again.sides.reader.gone).catch((error: unknown) => error)
  await again.advance(10)
  expect(await outcome).toMatchObject({ name: 'StoreSilent', isStuck: true })
  await advance(1)
})
