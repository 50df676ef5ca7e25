/**
 * What every QueueStore promises, whatever it is made of. A new store passes this suite first.
 */
import { afterEach, beforeEach, describe } from 'vitest'
import { comingIn } from './coming-in.ts'
import { debts } from './debts.ts'
import { leases } from './leases.ts'
import { looking } from './looking.ts'
import type { Open, Subject } from './mail.ts'
import { operators } from './operators.ts'
import { outcomes } from './outcomes.ts'
import { restarts } from './restarts.ts'

export function describeQueueStore(name: string, open: Open, { survivesCrashes }: { readonly survivesCrashes: boolean }): void {
  describe(name, () => {
    let current: Subject | undefined
    const subject = (): Subject => {
      if (current === undefined) throw new Error('no store is open')
      return current
    }
    beforeEach(async () => {
      current = await open()
    })
    afterEach(() => subject().done())

    describe('mail comes in', () => comingIn(subject))
    describe('leases', () => leases(subject))
    describe('outcomes', () => outcomes(subject))
    describe('debts', () => debts(subject))
    describe('operators', () => operators(subject))
    describe('looking at the queue', () => looking(subject))
    if (survivesCrashes) describe('restarts', () => restarts(subject, (next) => (current = next)))
  })
}
