/**
 * Runs lookups in tables of patterns. A match of few steps runs at once; a longer one runs in a thread, with a time limit. After
 * many steps the event loop has a turn, so that no other session waits.
 */
import { eventLoopTurn } from '../system/event-loop.ts'
import type { Timers } from '../system/clock.ts'
import type { Groups } from './pattern.ts'
import type { Lookup, MatchRequest } from './pattern-table.ts'
import { PatternThread } from './pattern-thread.ts'

/** Maximum steps of a match on the event loop: about 5 ms. */
const STEPS_AT_ONCE = 250_000
/** Steps after which the event loop has a turn. */
const STEPS_PER_TURN = 500_000
/** Maximum steps of a match of an address: about 20 ms. */
const STEPS_OF_ADDRESS = 1_000_000

/** A match that needs more time than is allowed. The mail is refused for now (4.3.0), so that it passes no check. */
export class MatchTooLong extends Error {
  override readonly name = 'MatchTooLong'
}

export class Matching {
  readonly #thread: PatternThread
  #steps = 0
  #inFlight = 0
  #activity = 0

  constructor(clock: Timers) {
    this.#thread = new PatternThread(clock)
  }

  /** Number of waits for the event loop or the thread. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Counter of the waits that began or ended. */
  get activity(): number {
    return this.#activity
  }

  /** The result of a lookup, or a promise of it. Throws, or rejects with, MatchTooLong. */
  run(lookup: Lookup): string | undefined | Promise<string | undefined> {
    return this.#continue(lookup, lookup.next())
  }

  /** Ends the thread. */
  async close(): Promise<void> {
    await this.#counted(this.#thread.close())
  }

  #continue(lookup: Lookup, first: IteratorResult<MatchRequest, string | undefined>): string | undefined | Promise<string | undefined> {
    let step = first
    while (step.done !== true) {
      const request = step.value
      const steps = request.pattern.stepsFor(request.octets)
      if (steps > STEPS_AT_ONCE) return this.#waitFor(lookup, this.#thread.match(request))
      this.#steps += steps
      if (this.#steps > STEPS_PER_TURN) return this.#waitFor(lookup, this.#afterTurn(request))
      step = lookup.next(matchNow(request))
    }
    return step.value
  }

  async #afterTurn(request: MatchRequest): Promise<Groups | null> {
    await eventLoopTurn()
    this.#steps = 0
    return matchNow(request)
  }

  async #waitFor(lookup: Lookup, match: Promise<Groups | null | 'too long'>): Promise<string | undefined> {
    const groups = await this.#counted(match)
    if (groups === 'too long') throw new MatchTooLong('a pattern takes too long to match; simplify it')
    return this.#continue(lookup, lookup.next(groups))
  }

  /** Counts a wait that ends without the clock. */
  async #counted<T>(wait: Promise<T>): Promise<T> {
    this.#inFlight++
    this.#activity++
    try {
      return await wait
    } finally {
      this.#inFlight--
      this.#activity++
    }
  }
}

/** The result of a lookup of an address, at once. Throws MatchTooLong for an address that is too long for a pattern. */
export function lookUpAtOnce(lookup: Lookup): string | undefined {
  let step = lookup.next()
  while (step.done !== true) {
    const { pattern, octets } = step.value
    if (pattern.stepsFor(octets) > STEPS_OF_ADDRESS) throw new MatchTooLong('an address is too long for a pattern; simplify it')
    step = lookup.next(matchNow(step.value))
  }
  return step.value
}

const matchNow = ({ pattern, octets, withGroups }: MatchRequest): Groups | null => pattern.match(octets, withGroups)
