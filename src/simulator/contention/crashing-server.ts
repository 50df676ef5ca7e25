/**
 * The Ethernet approach to grid computing (D. Thain and M. Livny, 2003), as a model: submitters hand jobs to a queue that works them off
 * at 20 a second. An open submission holds 20 of 8,000 file descriptors; when they run out the server crashes, every open submission is
 * lost, and it is back after 10 s. A fixed client tries again after a second; Aloha doubles from 1 s to 1 h, times a random 1 … 2; Ethernet
 * does the same and listens first: below 1,000 free descriptors it does not even try. All but the rates of 400 and 1,000 is our choice.
 */
import { mulberry32 } from '../../mail/random.ts'
import { EventQueue } from '../event-queue.ts'

export const DISCIPLINES = ['fixed', 'aloha', 'ethernet'] as const
export type Discipline = (typeof DISCIPLINES)[number]

export interface CrashingServerSettings {
  readonly clients: number
  readonly discipline: Discipline
  readonly seed: number
  /** Seconds of the experiment; 300 when absent. */
  readonly duration?: number
}

export interface CrashingServerResult {
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

/** Events: a client tries (its number), or one of these; a job carries the incarnation of the server that took it. */
const RESTARTED = -1
const jobDone = (incarnation: number): number => -2 - incarnation

class CrashingServer {
  readonly #settings: CrashingServerSettings
  readonly #draw: () => number
  readonly #events = new EventQueue()
  /** Open submissions, first in first out; only the first one is worked on. */
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
    // What remains is a job of a server that has crashed since.
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
    // Who waits for an answer notices the silence within a second, each on its own: clients do not march in step.
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
