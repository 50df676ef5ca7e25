/** Whole lists as files: the lines of the API's other form, and CSV with the same values. */
import { afterEach, expect, test } from 'vitest'
import { ApiWorld } from '../support/api-world.ts'

let opened: ApiWorld | undefined
afterEach(async () => {
  await opened?.close()
  opened = undefined
})

async function filled(): Promise<ApiWorld> {
  opened = await ApiWorld.open('memory')
  const { queue } = opened
  await queue.accept(['ann@a.example.org', 'bob@b.example.org'], { sender: '=cmd|"x",1@us.example' })
  await queue.accept(['carl@c.example'], { sender: '' })
  await queue.accept(['dora@ok.example'])
  await queue.advance(60_000)
  const selection = { kind: 'filter', filter: { sender: '<>' } }
  const held = await opened.api.post('/operations', { operation: 'hold', selection, reason: 'two, "quoted"' }, { as: 'operator' })
  expect(held.status).toBe(200)
  return opened
}

const NDJSON = { headers: { accept: 'application/x-ndjson' } } as const

for (const list of ['messages', 'messages?form=rows&order=newest', 'history', 'destinations?name=*', 'audit', 'events'])
  test(`${list} as a file has the lines that Accept gets`, async () => {
    const { api } = await filled()
    const query = list.includes('?') ? '&' : '?'
    const { text, headers } = await api.get(`/${list}${query}format=ndjson`)
    expect(headers.get('content-disposition')).toBe(`attachment; filename="${list.replace(/\?.*/, '')}.ndjson"`)
    expect(text).toBe((await api.get(`/${list}`, NDJSON)).text)
    if (!list.startsWith('events')) expect(text).not.toBe('')
  })

test('CSV has a row per recipient, times as ISO 8601, quoted fields, and no formula', async () => {
  const { api } = await filled()
  const { text, headers } = await api.get('/messages?format=csv')
  expect([headers.get('content-type'), headers.get('content-disposition')]).toEqual([
    'text/csv; charset=utf-8',
    'attachment; filename="messages.csv"',
  ])
  const [heading = '', ...rows] = text.trimEnd().split('\r\n')
  const columns = heading.split(',')
  expect(columns).toEqual(expect.arrayContaining(['queue_id', 'arrival_time', 'recipients.address', 'recipients.delay_reason']))
  expect(new Set(columns).size).toBe(columns.length)
  expect(rows).toHaveLength(3)
  expect(rows[0]).toContain(`"'=cmd|""x"",1@us.example"`)
  expect(rows[2]?.split(',')[columns.indexOf('arrival_time')]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/)
  expect(rows.map((row) => /(?:ann|bob|carl)@/.exec(row)?.[0])).toEqual(['ann@', 'bob@', 'carl@'])
})

test('CSV of the other lists has a row per entry, and the headings of an empty list', async () => {
  const { api } = await filled()
  const rows = async (path: string): Promise<readonly string[]> => (await api.get(path)).text.trimEnd().split('\r\n')
  expect(await rows('/history?format=csv&recipient=dora@*')).toHaveLength(2)
  expect((await rows('/history?format=csv&recipient=none'))[0]).toMatch(/^queue_id,arrival_time,left_time,.*recipients\.outcome/)
  expect((await rows('/destinations?format=csv'))[0]).toMatch(/^destination,node,state,/)
  expect(await rows('/messages?format=csv&form=rows')).toHaveLength(3)
  expect((await api.get('/audit?format=csv')).text).toContain('"two, ""quoted"""')
  expect((await api.get('/audit?format=xml')).status).toBe(422)
})

test('the whole audit log is read in pages of its conditions', async () => {
  const { api } = await filled()
  const { records } = (await api.get('/audit?action=hold')).json as unknown as { readonly records: readonly unknown[] }
  const { text } = await api.get('/audit?format=ndjson&action=hold')
  expect(text).toBe(records.map((record) => `${JSON.stringify(record)}\n`).join(''))
  expect((await api.get('/audit?format=ndjson&action=delete')).text).toBe('')
})
