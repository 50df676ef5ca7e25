/** Listings of a queue that changes between their statements, and of texts and ids that need care in the answers. */
import fc from 'fast-check'
import { expect, test, describe } from 'vitest'
import { openPostgresReader } from '../../../src/store/postgres/open-reader.ts'
import { openPostgresStore } from '../../../src/store/postgres/open-store.ts'
import { createPostgresReader } from '../../../src/store/postgres/postgres-reader.ts'
import type { Statements } from '../../../src/store/postgres/session/database-connection.ts'
import { matches, patternParameter } from '../../../src/store/postgres/session/patterns.ts'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'
import { pages } from '../../../src/queue/list-pages.ts'
import { realClock } from '../../support/real-clock.ts'
import { deferred, first, mail, queue, settleOne, T0 } from '../../conformance/mail.ts'
import { operate } from '../../support/operate.ts'
import { HOSTILE_CASES, isMatch, patternCase } from '../../support/pattern-cases.ts'
import { connectTo, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

describe.skipIf(WITHOUT_POSTGRES.skip)(`listings${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue } = usePostgres()

  test('a page has all its messages, also when others are restored between its statements', async () => {
    const url = await emptyQueue()
    const direct = await connectTo(url)
    const labels = { name: 'n1', program: '1.0.0', settings: '', hostname: '', draining: false }
    const { store, close } = await openPostgresStore({ url, durability: 'primary', labels, clock: realClock })
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

  test('filter patterns match as anywhere else, also in a database whose locale is Turkish', async () => {
    const direct = await connectTo(await emptyQueue())
    const cases = fc.sample(patternCase, { numRuns: 1_000, seed: 1 })
    const hostile = HOSTILE_CASES.flatMap(({ pattern, text }) => [
      { pattern, text },
      { pattern: `${pattern}*`, text: `${text}ab~` },
    ])
    const rows = [...cases, ...hostile].map(({ pattern, text }) => [text, patternParameter(pattern)])
    await direct.command('create temp table texts (n int generated always as identity, pattern text, subject text collate "tr-x-icu")')
    await direct.query('insert into texts (subject, pattern) select value ->> 0, value ->> 1 from json_array_elements($1::json)', [
      JSON.stringify(rows),
    ])
    const found = await direct.query<{ found: boolean }>(`select ${matches('subject', 'pattern')} as found from texts order by n`)
    expect(found.map((row) => row.found)).toEqual([...cases.map(isMatch), ...HOSTILE_CASES.flatMap(() => [false, true])])
    await direct.end()
  })

  test.each([
    ['ordinary texts', '<a@us.example>', 'rfc822;ann@far.example'],
    ['a text with the separator of lists', '<a\x1eb@us.example>', 'rfc822;ann@far.example'],
    ['a text that stands for null in lists', '<a@us.example>', '\x1d'],
  ])('all mail is listed as by a filter that matches all: %s', async (_, messageId, orcpt) => {
    const url = await emptyQueue()
    const direct = await connectTo(url)
    await direct.command('alter sequence message_id restart with 3000000000')
    const labels = { name: 'n1', program: '1.0.0', settings: '', hostname: '', draining: false }
    const { store, reader, close } = await openPostgresStore({ url, durability: 'primary', labels, clock: realClock })
    const entry = mail(store, { to: [{ address: 'ann@far.example', orcpt }, { address: 'böb@far.example' }] })
    await store.enqueue({ ...entry, message: { ...entry.message, messageId } })
    const tried = await queue(store, { sender: '', leased: true })
    await settleOne(store, tried, deferred(first(tried), T0 + 5, { attempts: 3 }))
    await queue(store, { hold: true })
    await operate(store, tried, { kind: 'expire' })
    for (const newestFirst of [false, true]) {
      const [all, matching] = [
        await reader.list(ANY_MESSAGE, { after: 0, limit: 10, newestFirst }),
        await reader.list({ ...ANY_MESSAGE, sender: '*' }, { after: 0, limit: 10, newestFirst }),
      ]
      expect(all).toEqual(matching)
      expect(all.map(({ recipientCount }) => recipientCount)).toEqual(newestFirst ? [1, 1, 2] : [2, 1, 1])
    }
    await close()
    await direct.end()
  })

  test('a command reads on a second session while the first one is busy', async () => {
    const url = await emptyQueue()
    const direct = await connectTo(url)
    const labels = { name: 'n1', program: '1.0.0', settings: '', hostname: '', draining: false }
    const { store, close } = await openPostgresStore({ url, durability: 'primary', labels, clock: realClock })
    const ids = [await queue(store), await queue(store), await queue(store), await queue(store), await queue(store)]
    const reader = await openPostgresReader({ url, durability: 'primary' })
    const sessions = async () => direct.query(`select 1 from pg_stat_activity where application_name = 'deferd command'`)
    await reader.counts()
    await reader.lastId()
    expect(await sessions()).toHaveLength(1)
    const seen: number[] = []
    for await (const page of pages(reader, { filter: ANY_MESSAGE, size: 2 })) seen.push(...page.map(({ message }) => message.id))
    expect(seen).toEqual(ids)
    expect(await sessions()).toHaveLength(2)
    await reader.close()
    await expect.poll(sessions).toEqual([])
    await close()
    await direct.end()
  })
})
