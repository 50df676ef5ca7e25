/**
 * Contention model of the AWS Architecture Blog (M. Brooker, 2015): clients change one row with optimistic locking. A client
 * reads the version and writes with it; the write fails if the version has changed, and the client backs off and starts again.
 * Every message takes N(10, 2) ms. Base 5 ms, cap 2 s; the exponent is the number of failures. Times are milliseconds.
 */
import { mulberry32 } from '../../system/random.ts'
import { EventQueue } from './event-queue.ts'

export const ROW_BACKOFFS = ['none', 'exponential', 'equal', 'decorrelated', 'full'] as const
export type RowBackoff = (typeof ROW_BACKOFFS)[number]

interface SharedRowSettings {
  readonly clients: number
  readonly backoff: RowBackoff
  readonly seed: number
}

interface SharedRowResult {
  /** Number of writes, failed ones included. */
  readonly calls: number
  /** Milliseconds until the last client has succeeded. */
  readonly time: number
}

const BASE = 5
const CAP = 2_000
const NET_MEAN = 10
const NET_DEVIATION = 2

/** Normally distributed random number (Box and Muller). */
const normal = (draw: () => number): number => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw())

function sleepFor(backoff: RowBackoff, failures: number, previous: number, draw: () => number): number {
  const exponential = Math.min(CAP, BASE * 2 ** failures)
  switch (backoff) {
    case 'none':
      return 0
    case 'exponential':
      return exponential
    case 'equal':
      return (exponential / 2) * (1 + draw())
    case 'decorrelated':
      return Math.min(CAP, BASE + draw() * (3 * previous - BASE))
    case 'full':
      return draw() * exponential
  }
}

const READ = 0
const READ_ANSWERED = 1
const WRITE = 2
const WRITE_REFUSED = 3
const WRITE_ACCEPTED = 4

export function runSharedRow({ clients, backoff, seed }: SharedRowSettings): SharedRowResult {
  const draw = mulberry32(seed)
  const events = new EventQueue()
  const travel = (): number => Math.abs(NET_MEAN + NET_DEVIATION * normal(draw))
  const send = (client: number, what: number, wait = 0): void => events.put(events.now + travel() + wait, client * 8 + what)
  const known = new Uint32Array(clients)
  const failures = new Uint32Array(clients)
  const slept = new Float64Array(clients).fill(BASE)
  let version = 0
  let calls = 0

  const handle = (client: number, what: number): void => {
    if (what === READ) {
      known[client] = version
      send(client, READ_ANSWERED)
    } else if (what === READ_ANSWERED) {
      send(client, WRITE)
    } else if (what === WRITE) {
      calls++
      const won = known[client] === version
      if (won) version++
      send(client, won ? WRITE_ACCEPTED : WRITE_REFUSED)
    } else if (what === WRITE_REFUSED) {
      const failed = (failures[client] = failures[client]! + 1)
      const sleep = (slept[client] = sleepFor(backoff, failed, slept[client]!, draw))
      send(client, READ, sleep)
    }
  }

  for (let client = 0; client < clients; client++) send(client, READ)
  for (let event = events.take(); event !== undefined; event = events.take()) handle(event >> 3, event & 7)
  return { calls, time: events.now }
}
