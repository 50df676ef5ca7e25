/**
 * The functions of the process that only schedule a turn of the event loop: setImmediate, queueMicrotask and process.nextTick. The
 * relay, nodemailer and smtp-server need them for every connection, and they are no part of time. Fake timers (of vitest, jest and
 * sinon, which all use @sinonjs/fake-timers) replace them, too. While a world is open, these functions remain the real ones,
 * whether the fake timers are installed before or after; setTimeout, setInterval and Date remain faked.
 */
import process from 'node:process'

type Scheduling = (...args: never[]) => unknown

interface Place {
  readonly owner: object
  readonly name: string
}

const PLACES: readonly Place[] = [
  { owner: globalThis, name: 'setImmediate' },
  { owner: globalThis, name: 'clearImmediate' },
  { owner: globalThis, name: 'queueMicrotask' },
  { owner: process, name: 'nextTick' },
]

/**
 * The function that a fake one replaces; undefined for a real one. A fake function has a member `clock`, which keeps the replaced
 * function under the name `_NAME`.
 */
function replacedBy(fake: unknown, name: string): Scheduling | undefined {
  if (typeof fake !== 'function' || !('clock' in fake)) return undefined
  const replaced: unknown = Reflect.get(Object(fake.clock), `_${name}`)
  return typeof replaced === 'function' ? (replaced as Scheduling) : undefined
}

/**
 * Keeps a property real: a fake function that is assigned to the property is stored, but a read gives the function that the fake one
 * replaces. The returned function ends this, and leaves the value that was assigned last.
 */
function keepReal({ owner, name }: Place): () => void {
  const property = Object.getOwnPropertyDescriptor(owner, name)
  if (property === undefined || !('value' in property)) return () => undefined
  let assigned: unknown = property.value
  const read = (): unknown => replacedBy(assigned, name) ?? assigned
  Object.defineProperty(owner, name, {
    configurable: true,
    enumerable: property.enumerable ?? true,
    get: read,
    set: (value: unknown) => {
      // The reporter of vitest reads the function, replaces it for a moment and assigns again what it has read.
      if (value !== read()) assigned = value
    },
  })
  return () => Object.defineProperty(owner, name, { ...property, value: assigned })
}

let users = 0
let endings: readonly (() => void)[] = []

/** Keeps the functions real until all callers have called the function returned to them. Further calls of that function have no effect. */
export function keepEventLoopFunctions(): () => void {
  if (users++ === 0) endings = PLACES.map(keepReal)
  let kept = true
  return () => {
    if (!kept) return
    kept = false
    if (--users === 0) for (const end of endings) end()
  }
}
