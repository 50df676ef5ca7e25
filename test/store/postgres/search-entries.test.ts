/** Entries by which messages are found: when a record in the history loses its texts, and how many of them a search reads. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openPostgresStore } from '../../../src/store/postgres/open-store.ts'
import { openSession } from '../../../src/store/postgres/session/client.ts'
import { POSTGRES } from '../../../src/store/postgres/spelling.ts'
import type { SearchTerm } from '../../../src/store/search/search-terms.ts'
import { statement } from '../../../src/store/sql/read.ts'
import { int8s } from '../../../src/store/postgres/session/arrays.ts'
import { forgetEntries } from '../../../src/store/postgres/search/search-queries.ts'
import { delivered, first, mail, settleOne, T0 } from '../../conformance/mail.ts'
import { realClock } from '../../support/real-clock.ts'
import { connectTo, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

interface Plan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly Plans?: readonly Plan[]
}

/** Entries that the index of terms has returned, and those that were read in the order of their ids. */
function readIn(plan: Plan): { readonly index: number; readonly rows: number } {
  const { 'Node Type': kind, 'Relation Name': table, 'Actual Rows': rows, 'Actual Loops': loops, Plans = [] } = plan
  const count = loops === 0 ? 0 : rows
  const own = { index: kind === 'Function Scan' ? count : 0, rows: table === 'search' ? count : 0 }
  return Plans.map(readIn).reduce((sum, one) => ({ index: sum.index + one.index, rows: sum.rows + one.rows }), own)
}

describe.skipIf(WITHOUT_POSTGRES.skip)(`entries${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue } = usePostgres()

  test('an erased message leaves no term, and gets entries of its changed record', async () => {
    const url = await emptyQueue()
    const direct = await connectTo(url)
    const labels = { name: 'n1', program: '1.0.0', settings: '', hostname: '', draining: false }
    const { store, close } = await openPostgresStore({ url, durability: 'primary', labels, clock: realClock })
    const enter = async (subject: string): Promise<number> => {
      const entry = mail(store, { leased: true, to: [{ address: `${subject}@far.example` }] })
      await store.enqueue({ ...entry, message: { ...entry.message, fromHeader: '', subject } })
      await settleOne(store, entry.message.id, delivered(first(entry.message.id), T0))
      return entry.message.id
    }
    const terms = async (): Promise<string> => JSON.stringify(await direct.query('select id, terms::text as terms from search order by id'))
    const [id] = [await enter('secret'), await enter('other')]
    await store.upkeep.indexMail()
    expect(await terms()).toContain('secret')
    await direct.query(forgetEntries, [int8s([id])])
    await direct.query(`update history set record = replace(record, 'secret', 'erased') where message = $1`, [id])
    expect(await terms()).not.toContain('secret')
    expect(await terms()).toContain('other')
    await store.upkeep.indexMail()
    expect(await terms()).toContain('s:erased')
    await close()
    await direct.end()
  })

  describe('a search among 30,000 entries', () => {
    const MANY = 30_000
    const PAGE = 101
    let session: Awaited<ReturnType<typeof openSession>>

    beforeAll(async () => {
      session = await openSession({ url: await emptyQueue(), durability: 'primary', application: 'deferd test' })
      await session.query('delete from search')
      await session.query(`
        insert into search (id, terms) select n::bigint * 131072, array_to_tsvector(array['s:all', 'd:' || n % 50 || '.example', 'a:user' || n || '@example'])
        from generate_series(1, ${MANY}) n`)
      await session.query('vacuum analyze search')
    })
    afterAll(() => session.end())

    /** Numbers of rows that its parts have returned, by their names, and the found messages. */
    const search = async (term: SearchTerm) => {
      const { text, parameters } = statement((add) => POSTGRES.messagesWith([term], (MANY + 1) * 131_072, PAGE, add))
      const { rows } = await session.query<{ message: string }>(text, [...parameters])
      const explained = await session.query<{ 'QUERY PLAN': readonly { readonly Plan: Plan }[] }>(
        `explain (analyze, format json) ${text}`,
        [...parameters],
      )
      return { messages: rows.map(({ message }) => Number(message)), read: readIn(explained.rows[0]!['QUERY PLAN'][0]!.Plan) }
    }
    const newest = (every: number) => Array.from({ length: PAGE }, (_, n) => MANY - n * every)

    test('a term of all is read from the new end until the page is full', async () => {
      for (const text of ['s:all', 's:a']) {
        const { messages, read } = await search({ text, isPrefix: text === 's:a' })
        expect(messages).toEqual(newest(1))
        expect(read.index).toBe(0)
        expect(read.rows).toBeLessThanOrEqual(512 + PAGE)
      }
    })

    test('so is one of every fiftieth entry', async () => {
      const { messages, read } = await search({ text: 'd:0.example', isPrefix: false })
      expect(messages).toEqual(newest(50))
      expect(read.index).toBe(0)
      expect(read.rows).toBeLessThanOrEqual(512 + 50 * PAGE)
    })

    test('a rare term is found by the index, after a probe', async () => {
      const { messages, read } = await search({ text: 'a:user17@example', isPrefix: false })
      expect(messages).toEqual([17])
      expect(read).toEqual({ index: 1, rows: 512 })
    })

    test('a term that only the newest entries have often is found by the index, with all older ones', async () => {
      await session.query(`update search set terms = terms || array_to_tsvector(array['s:late']) where id > $1 or id < $2`, [
        (MANY - 50) * 131_072,
        30 * 131_072,
      ])
      const { messages, read } = await search({ text: 's:late', isPrefix: false })
      expect(messages).toEqual([...newest(1).slice(0, 50), ...Array.from({ length: 29 }, (_, n) => 29 - n)])
      expect(read.index).toBe(79)
    })
  })
})
