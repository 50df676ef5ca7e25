/** Screens of events over HTTP, without scripts: state of subscriptions, parked events, replays in their steps. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { PageDaemon } from '../support/page-daemon.ts'
import { pageRequests, wordsIn } from '../support/page-requests.ts'

let daemon: PageDaemon
let server: Server
const { ask, textOf, post } = pageRequests(() => daemon, 'operator')
/** Statuses by the path of a target. */
const answers = new Map([
  ['/refuses', 400],
  ['/gone', 410],
  ['/takes', 204],
])
const taken: { readonly path: string; readonly id: string }[] = []
const takenAt = (wanted: string) => taken.filter(({ path }) => path === wanted)

beforeAll(async () => {
  server = createServer((request, response) => {
    const path = request.url ?? ''
    const status = answers.get(path) ?? 500
    request.resume().on('end', () => {
      if (status === 204) taken.push({ path, id: String(request.headers['webhook-id']) })
      response.writeHead(status).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const table = (path: string, types: readonly string[]) => ({
    to: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    allow_private: true,
    types,
  })
  daemon = await PageDaemon.start({
    events: {
      gone: table('/gone', ['message.accepted']),
      takes: table('/takes', ['message.accepted', 'recipient.*']),
      reads: { types: ['*'] },
    },
  })
  await daemon.send([{ from: '"><img src=x onerror=pwned()>"@shop.example', to: 'ann@far.example' }])
  // The acceptance and the first deferral: no other event comes within the test.
  await vi.waitFor(() => expect(takenAt('/takes')).toHaveLength(2), 30_000)
})
afterAll(async () => {
  await daemon.close()
  server.close()
  server.closeAllConnections()
})

test('the subscriptions are listed with their state, and the newest events with links', async () => {
  await expect.poll(async () => wordsIn(await textOf('webhooks'))).toMatch(/gone disabled \d.* takes active 0 .*204 No Content/)
  expect(wordsIn(await textOf('webhooks'))).toContain('reads active – 0 0 read by programs none yet')
  const page = await textOf('events')
  expect(wordsIn(page)).toContain('1 of 3 webhooks needs attention: Webhooks')
  expect(await textOf('events', 'viewer')).toContain('href="./webhooks/takes"')
  expect(page).toMatch(/href="\.\/messages\/\w+"/)
  expect(page).not.toContain('<img')
  expect(wordsIn(await textOf('events?type=recipient.*'))).not.toContain('message.accepted &quot')
  expect(wordsIn(await textOf('events?type=recipient.*&sender=nobody*'))).toContain('No event matches.')
  await expect
    .poll(async () => wordsIn(await textOf('')), { timeout: 20_000 })
    .toContain('The events of gone are not sent: 410 Gone; it is ')
})

test('a disabled subscription is enabled in three steps, with a record', async () => {
  const disabled = wordsIn(await textOf('webhooks/gone'))
  expect(disabled).toContain('Enable…')
  // It has refused this one.
  expect(disabled).toMatch(/410 Gone .*No event is parked\. An event is parked after 6 refusals with 4xx/)
  expect(disabled).not.toContain('refused no event')
  const plan = await textOf('webhooks/gone/replay?events=waiting')
  expect(wordsIn(plan)).toMatch(/Enable gone, and send what it selects of \d+ events?\?/)
  expect(wordsIn(plan)).toMatch(/Enable and send what it selects of \d+ events?/)
  expect(wordsIn(plan)).toContain('those of the types message.accepted')
  expect(wordsIn(plan)).toContain('deferd webhook replay gone')
  expect(plan).toContain('action="../../webhooks/gone/replay"')
  expect(wordsIn(await textOf('webhooks/gone'))).toContain('disabled')
  answers.set('/gone', 204)
  const done = await post('webhooks/gone/replay', 'events=waiting')
  expect([done.status, done.headers.get('location')]).toEqual([303, expect.stringMatching(/^\.\.\/gone\?replayed=\d&events=waiting$/)])
  await expect.poll(() => takenAt('/gone')).toHaveLength(1)
  expect(wordsIn(await textOf('webhooks/gone?replayed=1'))).toContain('It was asked to send what it selects of 1 event.')
  expect(wordsIn(await textOf('webhooks/gone?replayed=1&events=parked'))).toContain('It was asked to send 1 event.')
  expect(wordsIn(await textOf('audit'))).toMatch(/webhook replay done 1 webhook gone/)
})

test('events of a time are sent again with their ids', async () => {
  const before = takenAt('/takes')
  const plan = wordsIn(await textOf('webhooks/takes/replay?events=since&since=2h'))
  expect(plan).toMatch(/Send what it selects of \d+ events to takes again\?/)
  expect(plan).toContain('deferd webhook replay takes --since 2h')
  await post('webhooks/takes/replay', 'events=since&since=2h')
  await expect.poll(() => takenAt('/takes').length).toBeGreaterThanOrEqual(2 * before.length)
  const ids = takenAt('/takes').map(({ id }) => id)
  expect(ids.slice(before.length, 2 * before.length)).toEqual(before.map(({ id }) => id))
  for (const since of ['x', '0s', '99999999999999999999d']) {
    const refused = [
      await ask(`webhooks/takes/replay?events=since&since=${since}`),
      await post('webhooks/takes/replay', `events=since&since=${since}`),
    ]
    expect([since, ...refused.map(({ status }) => status)]).toEqual([since, 422, 422])
    const form = (await refused[0]?.text()) ?? ''
    expect(form).toMatch(new RegExp(`name="since"[^>]* value="${since}"`))
  }
})

test('one event is sent again with its id, from the list of events and from its subscription', async () => {
  const before = takenAt('/takes')
  const id = before[0]?.id ?? ''
  const link = `webhooks/takes/replay?events=one&amp;event=${id}`
  expect(await textOf('events')).toContain(`href="./${link}"`)
  expect(await textOf('webhooks/takes')).toContain(link)
  expect(wordsIn(await textOf('events'))).not.toContain('reads…')
  const plan = wordsIn(await textOf(link.replace('&amp;', '&')))
  expect(plan).toContain('Send one event to takes again?')
  expect(plan).toContain(`deferd webhook replay takes --event ${id}`)
  await post('webhooks/takes/replay', `events=one&event=${id}`)
  await expect.poll(() => takenAt('/takes').map((one) => one.id)).toEqual([...before.map((one) => one.id), id])
  expect(wordsIn(await textOf('events', 'viewer'))).not.toContain('Send again to')
  expect((await ask('webhooks/takes/replay?events=one')).status).toBe(422)
  expect((await ask('webhooks/takes/replay?events=one&event=evt_0_1')).status).toBe(409)
})

test('a viewer looks, and replays nothing', async () => {
  expect(wordsIn(await textOf('webhooks/takes', 'viewer'))).not.toContain('Replay…')
  expect((await ask('webhooks/takes/replay?events=waiting', 'viewer')).status).toBe(403)
  expect((await post('webhooks/takes/replay', 'events=waiting', 'viewer')).status).toBe(403)
  expect((await ask('webhooks/other')).status).toBe(404)
})
