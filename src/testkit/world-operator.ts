/** Operators and submitters of a world: what they ask of its relay. Each call ends when the relay has done it, in virtual time. */
import type { Cancelled } from '../queue/cancellation.ts'
import { ANY_QUEUE, type OperationName, type OperationSummary } from '../queue/operation-request.ts'
import { ANY_DEPARTURE } from '../queue/resend-selection.ts'
import type { ResendSummary } from '../queue/resending.ts'
import { ANY_MESSAGE } from '../store/message-conditions.ts'
import { requireDomain, requireKnownOptions, requireOperation } from './options/argument-checks.ts'
import type { RestartableRelay } from './restartable-relay.ts'
import { timeOf } from './submission.ts'
import { suppressionOf, type SuppressOptions } from './options/suppress-options.ts'
import type { Time } from './options/time.ts'
import type { WorldTime } from './world-time.ts'

interface WorldOperatorDeps {
  readonly time: WorldTime
  readonly lives: RestartableRelay
  /** Records an action of the test. */
  readonly did: (what: string) => void
}

/** The methods of `World` of the same names. */
export class WorldOperator {
  readonly #time: WorldTime
  readonly #lives: RestartableRelay
  readonly #did: (what: string) => void

  constructor({ time, lives, did }: WorldOperatorDeps) {
    this.#time = time
    this.#lives = lives
    this.#did = did
  }

  async cancel(queueId: string): Promise<Pick<Cancelled, 'cancelled' | 'tooLate'>> {
    this.#time.requireClock()
    this.#did('cancel')
    const details = await this.#lives.queue.reader.details(queueId)
    if (details === undefined) throw new TypeError(`there is no message ${queueId}`)
    const [outcome] = await this.#time.driven(this.#lives.operations().cancel([details.message], 'app'))
    const { cancelled = [], tooLate = [] } = outcome ?? {}
    return { cancelled, tooLate }
  }

  async operate(
    operation: OperationName,
    ids: readonly string[] | 'all',
    { notBefore, class: named = null }: { readonly notBefore?: Time; readonly class?: string | null },
  ): Promise<OperationSummary> {
    this.#time.requireClock()
    requireOperation(operation, ids)
    const release = timeOf('notBefore', notBefore) ?? null
    if ((operation === 'reschedule') !== (release !== null))
      throw new TypeError('operate: reschedule, and no other operation, needs notBefore')
    if ((operation === 'reclass') !== (named !== null)) throw new TypeError('operate: reclass, and no other operation, needs class')
    this.#did(operation)
    const selection = ids === 'all' ? { kind: 'filter' as const, filter: ANY_MESSAGE, limit: null } : { kind: 'ids' as const, ids }
    return this.#time.driven(
      this.#lives.operations().perform({ operation, selection, ...ANY_QUEUE, release, class: named, dryRun: false, who: 'operator' }),
    )
  }

  async resend(ids: readonly string[] | 'all', options: { readonly again?: boolean }): Promise<ResendSummary> {
    this.#time.requireClock()
    requireKnownOptions('resend', options, ['again'])
    this.#did('resend')
    const selection = ids === 'all' ? { kind: 'filter' as const, filter: ANY_DEPARTURE } : { kind: 'ids' as const, ids }
    const terms = { selection, again: options.again === true, isVisible: () => true, rate: null }
    const told = { who: 'operator', words: ids === 'all' ? '' : ids.join(' '), reason: null, request: null }
    return this.#time.driven(
      this.#lives
        .operations()
        .resending.start({ ...terms, ...told })
        .then(({ ended }) => ended),
    )
  }

  async erase(side: 'recipient' | 'sender', pattern: string): Promise<OperationSummary> {
    this.#time.requireClock()
    this.#did('erase')
    const terms = { side, pattern, before: this.#lives.life.clock.now() + 1 }
    const told = { who: 'operator', reason: null, request: null }
    return this.#time.driven(
      this.#lives
        .operations()
        .erasing.start({ terms, ...told })
        .then(({ ended }) => ended),
    )
  }

  async suppress(address: string, options: SuppressOptions): Promise<void> {
    this.#time.requireClock()
    await this.#time.driven(this.#lives.relay.suppressions.changes.add(suppressionOf(address, options), { who: 'operator' }))
  }

  async suspend(destination: string): Promise<void> {
    this.#time.requireClock()
    requireDomain('suspend', destination)
    await this.#time.driven(this.#lives.relay.schedulerControl.suspend(destination, { by: 'operator', until: null, reason: null }))
  }

  async resume(destination: string): Promise<void> {
    this.#time.requireClock()
    requireDomain('resume', destination)
    await this.#time.driven(this.#lives.relay.schedulerControl.resume(destination, 'operator'))
  }
}
