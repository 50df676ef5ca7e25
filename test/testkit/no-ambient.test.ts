/**
 * Inside a world, deferd's own code does not use time, timers or random numbers of the process. Libraries may (a Message-ID, a timer
 * that never fires); the stack shows the caller.
 */
import { createTransport } from 'nodemailer'
import { afterEach, expect, test } from 'vitest'
import { createWorld } from '../../src/testkit/index.ts'

const SOURCES = new URL('../../src/', import.meta.url).pathname
const REAL = { Date, setTimeout, setInterval, setImmediate, random: Math.random, now: performance.now.bind(performance) }

afterEach(() => {
  Object.assign(globalThis, {
    Date: REAL.Date,
    setTimeout: REAL.setTimeout,
    setInterval: REAL.setInterval,
    setImmediate: REAL.setImmediate,
  })
  Math.random = REAL.random
  performance.now = REAL.now
})

/** The caller: the first frame outside this file, if it is a file of src. */
function asker(): string | undefined {
  const frames = (new Error().stack ?? '').split('\n').slice(1)
  const caller = frames.find((frame) => !frame.includes('no-ambient.test'))
  return caller?.includes(SOURCES) === true ? caller.slice(caller.indexOf(SOURCES) + SOURCES.length).replace(/:.*$/, '') : undefined
}

/** Only src/system may use them. */
const offenders = (askers: Iterable<string>): readonly string[] => [...askers].filter((file) => !file.startsWith('system/'))

/** Replaces the globals by functions that record callers in src. */
function poison(): Set<string> {
  const askers = new Set<string>()
  const noting = <T extends object>(real: T): T =>
    new Proxy(real, {
      apply: (target, self, args) => {
        note()
        return Reflect.apply(target as unknown as () => unknown, self, args)
      },
      construct: (target, args) => {
        // A given instant is arithmetic; only asking for the present is ambient.
        if (args.length === 0) note()
        return Reflect.construct(target as unknown as new () => object, args)
      },
      get: (target, key) => (key === 'now' ? noting(Reflect.get(target, key) as object) : Reflect.get(target, key)),
    })
  const note = () => {
    const who = asker()
    if (who !== undefined) askers.add(who)
  }
  Object.assign(globalThis, {
    Date: noting(REAL.Date),
    setTimeout: noting(REAL.setTimeout),
    setInterval: noting(REAL.setInterval),
    setImmediate: noting(REAL.setImmediate),
  })
  Math.random = noting(REAL.random)
  performance.now = noting(REAL.now)
  return askers
}

/** Two days with everything in them: greylisting, an outage, a bounce, warnings, a slow and a silent server. */
async function twoDays(): Promise<readonly string[]> {
  const world = await createWorld({ store: 'sqlite', config: { delay_warning_time: '4h', retry_jitter: 0.2 } })
  world.destination('slow.example').greylists('5m').isSlow('2s')
  world.destination('gone.example').isDownFor('3d')
  world.destination('mute.example').fails({ at: 'mail', stall: true, first: 2 })
  world.destination('picky.example').rejects()
  const to = ['ann@slow.example', 'eve@gone.example', 'bob@picky.example', 'joe@mute.example']
  await createTransport(world.transport()).sendMail({ from: 'app@us.example', to, text: 'hi' })
  await world.settle()
  const actions = world
    .mailbox('app@us.example')
    .notices()
    .map(({ action }) => action)
  await world.close()
  return actions
}

test('no source of deferd uses the time, the timers or the randomness of the process', async () => {
  const askers = poison()
  const actions = await twoDays()
  expect(offenders(askers)).toEqual([])
  // The one turn of the event loop between two instants is recorded, so the check works.
  expect([...askers]).toEqual(['system/event-loop.ts'])
  expect(actions.toSorted()).toEqual(['delayed', 'failed', 'failed'])
})

test('a closed world leaves no timer behind', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
  const before = timers()
  await twoDays()
  expect(timers()).toBeLessThanOrEqual(before)
})
