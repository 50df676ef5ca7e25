/** Listings of a queue that changes between their statements. */
import { expect, test, describe } from 'vitest'
import { openPostgresStore } from '../../../src/store/postgres/open-store.ts'
import { createPostgresReader } from '../../../src/store/postgres/postgres-reader.ts'
import type { Statements } from '../../../src/store/postgres/session/database-connection.ts'
import { ANY_MESSAGE } from '../../../src/store/queue-reader.ts'
import { systemClock } from '../../../src/system/system-clock.ts'
import { queue, T0 } from '../../conformance/mail.ts'
import { operate } from '../../support/operate.ts'
import { connectTo, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

describe.skipIf(WITHOUT_POSTGRES.skip)(`listings${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue } = usePostgres()

  test('a page has all its messages, also when others are restored between its statements', async () => {
    const url = await emptyQueue()
    const direct = await connectTo(url)
    const labels = { name: 'n1', program: '1.0.0', settings: '', draining: false }
    const { store, close } = await openPostgresStore({ url, durability: 'primary', labels, clock: systemClock })
    const [trashed, ...stayed] = [await queue(store), await queue(store), await queue(store)]
    await operate(store, trashed, { kind: 'delete', now: T0, purge: false })
    let isRestored: Promise<unknown> | undefined
    /** Statements about recipients wait until a message below the page is restored, those about messages do not. */
    const interrupted: Statements = {
      query: async (text, parameters) => {
        if (!text.includes('from recipient')) return direct.query(text, parameters)
        isRestored ??= direct.query('select 1').then(() => operate(store, trashed, { kind: 'restore' }))
        await isRestored
        return direct.query(text, parameters)
      },
    }
    const reader = createPostgresReader(interrupted, async () => undefined)
    const page = await reader.list(ANY_MESSAGE, { after: 0, limit: 2 })
    expect(page.map(({ message, recipients }) => [message.id, recipients.length])).toEqual(stayed.map((id) => [id, 1]))
    await close()
    await direct.end()
  })
})
