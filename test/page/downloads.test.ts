/** The lists of the page lead to files with the same entries, also without scripts. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PageDaemon } from '../support/page-daemon.ts'

let daemon: PageDaemon
let cookie: string
beforeAll(async () => {
  daemon = await PageDaemon.start()
  cookie = await daemon.cookie('viewer')
  await daemon.send([
    { from: 'news@shop.example', to: 'ann@far.example' },
    { from: 'orders@shop.example', to: 'bob@far.example' },
  ])
})
afterAll(() => daemon.close())

const ask = (path: string): Promise<Response> => fetch(daemon.url + path, { headers: { cookie } })

for (const screen of [
  'messages?sender=news@shop.example&arrived_after=2026-01-01T10:00',
  'messages?queue=hold&order=newest',
  'history?recipient=ann@far.example&left_after=2026-01-01T10:00',
  'audit?who=page:*&recorded_before=2046-01-01T10:00',
  'events?type=message.*&occurred_after=2026-01-01T10:00',
  'destinations?name=*9&order=name',
])
  test(`${screen} has its files`, async () => {
    // A screen has no list until the queue is counted.
    const listed = async (): Promise<string> => (await ask(screen)).text()
    await expect.poll(listed, { timeout: 20_000 }).toContain('class="downloads"')
    const markup = await listed()
    const links = [...markup.matchAll(/href="\.\/(api\/v1\/[^"]*format=\w+)" download/g)].map(([, path]) =>
      (path ?? '').replaceAll('&amp;', '&'),
    )
    expect(links).toHaveLength(2)
    for (const link of links) {
      const response = await ask(link)
      const text = await response.text()
      expect(response.status, text).toBe(200)
      expect(response.headers.get('content-disposition')).toMatch(/^attachment; filename="\w+\.(?:csv|ndjson)"$/)
      if (screen.startsWith('messages?sender')) expect([text.includes('news@'), text.includes('orders@')]).toEqual([true, false])
    }
  })
