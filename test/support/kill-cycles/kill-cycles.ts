/**
 * Cycles of `deferd start` and SIGKILL, with submissions over SMTP and by `sendmail`, operations, retries and notices in flight. The
 * account of every acknowledged recipient is made at the end: kill-account.ts.
 */
import { join } from 'node:path'
import { expect } from 'vitest'
import { NoSuchQueue } from '../../../src/store/errors.ts'
import { openStoreReadOnly } from '../../../src/store/sqlite/open-store.ts'
import { seededRandom } from '../../../src/system/random.ts'
import { portBelowEphemeral } from '../ports.ts'
import { faultyEnvironment, noFaultsBecause, type IoFault } from '../io-faults/io-faults.ts'
import { KillableRelay } from '../killable-relay.ts'
import { account, recipientsOf, submittedTo, type KillAccount } from './kill-account.ts'
import { ParkedMail, perform, suspendAndResume } from './parked-mail.ts'
import { Submissions } from './submissions.ts'

export interface KillCycles {
  readonly cycles: number
  readonly seed: number
}

export interface KillReport extends KillAccount {
  readonly cycles: number
  /** Cycles in which the daemon was killed at a system call, before a write or a sync or an unlink. */
  readonly atSystemCalls: number
  readonly operations: number
  readonly submissions: number
}

/** Cycles between two in which the queue is left to drain: mail in flight at two kills waits some seconds after a start. */
const DRAINED_EVERY = 50
const CLIENTS = 4
/** Pause of each client after a message, in ms. */
const PACE = 10
/** Longest life of a daemon after it listens, in ms. */
const LIFE = 500
const DRAIN_LIMIT = 60_000

/** System calls before which a daemon dies, with the range of the number of the call. */
const CALLS: readonly { readonly call: IoFault['call']; readonly path: string; readonly upTo: number }[] = [
  { call: 'write', path: 'queue.db-wal', upTo: 400 },
  { call: 'sync', path: 'queue.db-wal', upTo: 120 },
  { call: 'write', path: '*/queue.db', upTo: 30 },
  { call: 'sync', path: '*/queue.db', upTo: 3 },
  { call: 'unlink', path: 'maildrop', upTo: 2 },
]

export async function killCycles({ cycles, seed }: KillCycles): Promise<KillReport> {
  const chance = seededRandom(seed).stream('kills')
  const story = new Story(chance, await portBelowEphemeral(chance))
  try {
    await story.open()
    for (let cycle = 1; cycle <= cycles; cycle++) {
      await story.cycle()
      if (cycle % DRAINED_EVERY === 0 && cycle < cycles) await story.drain()
    }
    await story.drain()
    return { cycles, ...story.report() }
  } finally {
    await story.close()
  }
}

class Story {
  readonly #chance: () => number
  readonly #relay: KillableRelay
  readonly #parked: ParkedMail
  readonly #submissions: Submissions
  readonly #destination: () => string
  #operating = Promise.resolve()
  #runs = false
  #kills = 0
  #atSystemCalls = 0

  constructor(chance: () => number, port: number) {
    this.#chance = chance
    this.#relay = new KillableRelay({ smtpd_listen: `127.0.0.1:${port}`, history_limit: '1000', trash_lifetime: '1m' })
    this.#destination = () => `smtp:${this.#relay.nextHop}`
    this.#parked = new ParkedMail(this.#relay.queueDirectory, chance)
    this.#submissions = new Submissions(this.#relay)
  }

  async open(): Promise<void> {
    const { load, far } = this.#relay
    far.delay = 5
    load.pace = PACE
    load.onAcknowledged = (number, queueId) => {
      for (const address of recipientsOf(number)) if (address.startsWith('busy-') && queueId !== '') this.#parked.add(address, queueId)
    }
    await this.#relay.open(CLIENTS, recipientsOf)
  }

  /** Starts the daemon and kills it: before it listens, at a random moment, or at a system call. */
  async cycle(): Promise<void> {
    const fate = this.#chance()
    const call = fate < 0.4 && noFaultsBecause() === null ? CALLS[Math.floor(this.#chance() * CALLS.length)] : undefined
    if (this.#submissions.running < 2) this.#submissions.submit(submittedTo)
    const started = this.#relay.startDaemon(call === undefined ? {} : this.#killedAt(call))
    if (fate < 0.5 && call === undefined) await pause(this.#chance() * LIFE)
    else {
      await started
      this.#operate()
    }
    const how = await this.#relay.die(call === undefined ? this.#chance() * LIFE : 2 * LIFE)
    if (how === 'at the failpoint') this.#atSystemCalls++
    this.#kills++
    await started
    await this.#stopOperating()
    await this.#inspect()
  }

  /** Starts the daemon, sends nothing more until the queue is empty, and stops the daemon in order. */
  async drain(): Promise<void> {
    const { load, queueDirectory } = this.#relay
    await this.#submissions.settled()
    await this.#relay.startDaemon()
    load.pace = null
    await suspendAndResume(queueDirectory, this.#destination())
    expect(await this.#parked.deleteAll()).toBe(true)
    expect(await perform(queueDirectory, 'release', this.#held())).toBe(true)
    const isDrained = await this.#relay.drained(DRAIN_LIMIT)
    expect(isDrained ? [] : [...(await this.#relay.left()), ...this.#relay.log.slice(-40)]).toEqual([])
    expect((await this.#relay.terminate()).code).toBe(0)
    await this.#inspect()
    load.pace = PACE
  }

  report(): Omit<KillReport, 'cycles'> {
    return {
      ...account(this.#relay, { submissions: this.#submissions, kills: this.#kills }),
      atSystemCalls: this.#atSystemCalls,
      operations: this.#parked.operations,
      submissions: this.#submissions.acknowledged.size,
    }
  }

  async close(): Promise<void> {
    this.#runs = false
    await this.#operating
    await this.#submissions.settled()
    await this.#relay.close()
  }

  #killedAt({ call, path, upTo }: (typeof CALLS)[number]): Readonly<Record<string, string>> {
    const from = 1 + Math.floor(this.#chance() * upTo)
    return faultyEnvironment({ call, path, from, count: 1, error: 'SIGKILL' }, join(this.#relay.queueDirectory, 'kills.log'))
  }

  #held(): readonly string[] {
    return [...this.#relay.acknowledged.values()].slice(-200).filter((id) => id !== '')
  }

  /** Operations one after the other, as long as the daemon runs. */
  #operate(): void {
    this.#runs = true
    const { queueDirectory } = this.#relay
    this.#operating = (async () => {
      while (this.#runs) {
        const kind = this.#chance()
        if (kind < 0.1) await suspendAndResume(queueDirectory, this.#destination())
        else if (kind < 0.2) await perform(queueDirectory, 'flush', [])
        else await this.#parked.operate()
        await pause(20)
      }
    })()
  }

  async #stopOperating(): Promise<void> {
    this.#runs = false
    await this.#operating
  }

  /** The queue as the kill has left it: a sound file, with all parked mail where it may be. */
  async #inspect(): Promise<void> {
    try {
      const queue = openStoreReadOnly(this.#relay.queueDirectory)
      expect(queue.defects()).toEqual([])
      await queue.close()
    } catch (error) {
      // Killed before the queue was created.
      if (error instanceof NoSuchQueue) return
      throw error
    }
    await this.#parked.compare()
  }
}

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))
