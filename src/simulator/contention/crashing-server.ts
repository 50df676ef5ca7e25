/**
 * Model of "The Ethernet Approach to Grid Computing" (D. Thain and M. Livny, 2003): clients submit jobs to a queue that processes
 * 20 per second. An open submission holds 20 of 8,000 file descriptors; without free ones the server crashes, loses every open
 * submission and restarts after 10 s. A fixed client retries after 1 s. Aloha doubles from 1 s to 1 h, times a random 1 … 2.
 * Ethernet does the same, and sends only if at least 1,000 descriptors are free. The article gives the 400 clients and the 1,000
 * descriptors; the rest is chosen here.
 */
import { mulberry32 } from '../../system/random.ts'
import { EventQueue } from './event-queue.ts'

export const DISCIPLINES = ['fixed', 'aloha', 'ethernet'] as const
export type Discipline = (typeof DISCIPLINES)[number]

interface CrashingServerSettings {
  readonly clients: number
  readonly discipline: Discipline
  readonly seed: number
  /** Seconds of the experiment; default 300. */
  readonly duration?: number
}

interface CrashingServerResult {
  readonly jobs: number
  readonly crashes: number
  readonly attempts: number
  /** Jobs done by the end of each second. */
  readonly done: readonly number[]
}

const SECOND = 1_000_000
const DESCRIPTORS = 8_000
const PER_SUBMISSION = 20
const CARRIER = 1_000
const SERVICE = SECOND / 20
const RESTART = 10 * SECOND
const FIRST_WAIT = SECOND
const LONGEST_WAIT = 3_600 * SECOND

/**
 * Event codes. A non-negative event is the number of a client that sends. A job event carries the incarnation of the server that
 * accepted the job.
 */
const RESTARTED = -1
const jobDone = (incarnation: number): number => -2 - incarnation

class CrashingServer {
  readonly #settings: CrashingServerSettings
  readonly #draw: () => number
  readonly #events = new EventQueue()
  /** Open submissions, first in, first out. Only the first one is processed. */
  #open: number[] = []
  readonly #failures: Uint32Array
  #incarnation = 0
  #up = true
  #jobs = 0
  #attempts = 0

  constructor(settings: CrashingServerSettings) {
    this.#settings = settings
    this.#draw = mulberry32(settings.seed)
    this.#failures = new Uint32Array(settings.clients)
  }

  run(): CrashingServerResult {
    const { clients, duration = 300 } = this.#settings
    for (let client = 0; client < clients; client++) this.#events.put(Math.floor(this.#draw() * SECOND), client)
    const done: number[] = []
    const end = duration * SECOND
    for (;;) {
      const event = this.#events.take()
      const now = event === undefined ? end : Math.min(end, this.#events.now)
      while (now >= (done.length + 1) * SECOND) done.push(this.#jobs)
      if (event === undefined || now >= end) break
      this.#happen(event)
    }
    return { jobs: this.#jobs, crashes: this.#incarnation, attempts: this.#attempts, done }
  }

  #happen(event: number): void {
    if (event >= 0) this.#try(event)
    else if (event === RESTARTED) this.#up = true
    else if (event === jobDone(this.#incarnation)) this.#finishJob()
    // Ignores a job of an earlier incarnation of the server.
  }

  #try(client: number): void {
    const free = DESCRIPTORS - this.#open.length * PER_SUBMISSION
    if (this.#settings.discipline === 'ethernet' && this.#up && free < CARRIER) return this.#failed(client)
    this.#attempts++
    if (!this.#up) return this.#failed(client)
    if (free < PER_SUBMISSION) return this.#crash(client)
    this.#open.push(client)
    if (this.#open.length === 1) this.#startJob()
  }

  #crash(last: number): void {
    const lost = [...this.#open, last]
    this.#open = []
    this.#up = false
    this.#incarnation++
    this.#events.put(this.#events.now + RESTART, RESTARTED)
    // Each client notices the crash at its own time within a second, so that clients are not synchronized.
    for (const client of lost) this.#failed(client, Math.floor(this.#draw() * SECOND))
  }

  #failed(client: number, noticing = 0): void {
    const failures = (this.#failures[client] = this.#failures[client]! + 1)
    const doubled = Math.min(FIRST_WAIT * 2 ** Math.min(failures - 1, 40), LONGEST_WAIT)
    const wait = this.#settings.discipline === 'fixed' ? FIRST_WAIT : Math.floor(doubled * (1 + this.#draw()))
    this.#events.put(this.#events.now + noticing + wait, client)
  }

  #startJob(): void {
    this.#events.put(this.#events.now + SERVICE, jobDone(this.#incarnation))
  }

  #finishJob(): void {
    const client = this.#open.shift()
    if (client === undefined) return
    this.#jobs++
    this.#failures[client] = 0
    this.#events.put(this.#events.now, client)
    if (this.#open.length > 0) this.#startJob()
  }
}

export const runCrashingServer = (settings: CrashingServerSettings): CrashingServerResult => new CrashingServer(settings).run()
