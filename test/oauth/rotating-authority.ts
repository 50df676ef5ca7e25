/** An authority that rotates refresh tokens, and the nodes of a queue that ask it, in virtual time. */
import { joinMemoryQueue } from '../support/memory-node-table.ts'
import type { MemoryQueue } from '../../src/store/memory/queue-state.ts'
import { SharedGrantRenewal } from '../../src/oauth/shared-grant-renewal.ts'
import { type SharedGrants } from '../../src/oauth/shared-grant.ts'
import type { TokenAnswer } from '../../src/oauth/token-answer.ts'
import { MINUTE, sleep, type Clock, type Duration } from '../../src/system/clock.ts'
import { eventLoopTurn } from '../../src/system/event-loop.ts'
import type { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

export const LIFETIME: Duration = 60 * MINUTE

/** Accepts the current refresh token, and the one before it until the current one is used first, unless it `revokes` at once. */
export class RotatingAuthority {
  readonly requests: string[] = []
  /** Answers in place of its own, in order. */
  readonly script: (TokenAnswer | 'never')[] = []
  revokes = false
  latency: Duration = 100
  #accepted = new Set<string>()
  #issued = 0
  readonly #access = new Map<string, number>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The refresh token of a person who logs in. */
  login(): string {
    const token = `refresh-${++this.#issued}`
    this.#accepted.add(token)
    return token
  }

  revokeAll(): void {
    this.#accepted.clear()
  }

  accepts(access: string): boolean {
    return (this.#access.get(access) ?? 0) > this.#clock.now()
  }

  request = async (token: string): Promise<TokenAnswer> => {
    this.requests.push(token)
    await sleep(this.#clock, this.latency)
    const scripted = this.script.shift()
    if (scripted === 'never') return new Promise(() => undefined)
    if (scripted !== undefined) return scripted
    if (!this.#accepted.has(token)) return { kind: 'refused', error: 'invalid_grant', why: 'invalid_grant (AADSTS70008)' }
    const refreshToken = `refresh-${++this.#issued}`
    // The former token is accepted until the new one is used; its next use ends the new one.
    this.#accepted = new Set(this.revokes ? [refreshToken] : [token, refreshToken])
    const access = `access-${this.#issued}`
    this.#access.set(access, this.#clock.now() + LIFETIME)
    return { kind: 'token', token: access, lifetime: LIFETIME, refreshToken }
  }
}

/** A process that may be killed: then none of its calls ends any more, and none begins. */
export class Node {
  readonly renewal: SharedGrantRenewal
  /** Begins and ends of calls, of the store and of the authority. */
  steps = 0
  /** Number of the step after which the process is gone. */
  diesAfter = Infinity
  file: string | null

  constructor(queue: MemoryQueue, clock: VirtualClock, authority: RotatingAuthority, file: string | null) {
    const { store } = joinMemoryQueue(queue, { name: 'n', now: () => clock.now() })
    this.file = file
    this.renewal = new SharedGrantRenewal({
      name: 'm365',
      user: '',
      grants: this.#mortal(store.records.grants),
      clock,
      fileToken: () => this.file,
      request: this.#step(authority.request),
    })
  }

  get isDead(): boolean {
    return this.steps >= this.diesAfter
  }

  #mortal(grants: SharedGrants): SharedGrants {
    return {
      read: this.#step((...args: Parameters<SharedGrants['read']>) => grants.read(...args)),
      claim: this.#step((...args: Parameters<SharedGrants['claim']>) => grants.claim(...args)),
      replace: this.#step((...args: Parameters<SharedGrants['replace']>) => grants.replace(...args)),
      release: this.#step((...args: Parameters<SharedGrants['release']>) => grants.release(...args)),
    }
  }

  #step<A extends readonly unknown[], T>(call: (...args: A) => Promise<T>): (...args: A) => Promise<T> {
    return async (...args) => {
      if (this.isDead) return new Promise(() => undefined)
      this.steps++
      const answer = await call(...args)
      this.steps++
      return this.isDead ? new Promise(() => undefined) : answer
    }
  }
}

/** Runs the clock until the promise settles, or `gone` is true. Undefined for the latter. */
export async function driven<T>(clock: VirtualClock, promise: Promise<T>, gone: () => boolean = () => false): Promise<T | undefined> {
  let isSettled = false
  const settled = (): void => void (isSettled = true)
  promise.then(settled, settled)
  for (;;) {
    for (let turn = 0; turn < 3; turn++) await eventLoopTurn()
    if (isSettled) return promise
    if (gone()) return undefined
    if (!clock.runNext()) throw new Error('nothing is left to run')
  }
}
