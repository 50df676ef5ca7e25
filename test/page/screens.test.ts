/** The screens over HTTP, without a browser: hostile mail, roles, forms, relative links. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { placeOf } from '../../src/page/action-routes.ts'
import { wholeWords } from '../support/page-client.ts'
import { PageDaemon, type PageRole } from '../support/page-daemon.ts'
import { pageRequests } from '../support/page-requests.ts'
import { MANY_STARS } from '../support/pattern-cases.ts'

const HOSTILE = '"><img src=x onerror=pwned()>"@shop.example'

let daemon: PageDaemon
const { cookieOf, ask, textOf, post } = pageRequests(() => daemon, 'admin')

beforeAll(async () => {
  daemon = await PageDaemon.start({ provider: { google: { mx: ['.google.example'] } } })
  await daemon.send([
    { from: HOSTILE, to: 'ann@far.example', subject: '</script><script>pwned()</script>' },
    ...Array.from({ length: 4 }, (_, i) => ({ from: 'news@shop.example', to: `customer${i}@far.example` })),
  ])
})
afterAll(() => daemon.close())

/** The value of a hidden field. */
const hiddenIn = (page: string, name: string): string =>
  (new RegExp(`name="${name}" value="([^"]*)"`).exec(page)?.[1] ?? '').replaceAll('&amp;', '&')

async function idsIn(path: string): Promise<readonly string[]> {
  return [...(await textOf(path)).matchAll(/href="\.\/messages\/(\w+)"/g)].map(([, id]) => id ?? '')
}

test('an invalid form says what is wrong, and neither that nothing matches nor where the files are', async () => {
  for (const path of [
    'messages?older_than=foo',
    'messages?colour=red',
    'history?since=soon',
    'history?left_after=soon',
    'audit?recorded_after=soon',
    'events?occurred_before=soon',
  ]) {
    const response = await ask(path)
    const markup = await response.text()
    expect(response.status, path).toBe(422)
    expect(markup, path).toMatch(/<p class="problem" role="alert">/)
    expect(markup, path).not.toMatch(/match(?:es)?:|has left the queue\.|No record|There are no events|No event matches|download>/)
  }
})

const SCREENS = [
  '',
  'trends',
  'trends?range=1h&split_by=sender_domain',
  'trends?from=2020-01-01T00:00&to=2026-11-20T00:00',
  'destinations',
  'causes',
  'messages',
  'history',
  'planner',
  'audit',
  'events',
  'log',
  'nodes',
  'providers',
  'providers/google',
  'providers/google/suspend',
  'settings',
  'webhooks',
  'new-webhook',
  'suppressions',
  'new-suppression',
  'suppressions/resume?scope=x.example',
  'quotas',
  'shares',
  'quotas/reset?key=ann@x.example&quota=app',
  'tokens',
  'new-token',
  'deliverability',
  'deliverability/relay.example',
  'domain-check',
  'domain-check?domain=x.example',
  'zone?back=messages',
  'operations/new?operation=hold',
  'destinations/x.example/suspend',
]

describe('every screen', () => {
  test('has a title, one main part, only relative links and no inline script or style', async () => {
    const [id] = await idsIn('messages')
    for (const path of [...SCREENS, `messages/${id ?? ''}`, 'destinations/smtp%3A%5B127.0.0.1%5D%3A9', 'nothing']) {
      const page = await textOf(path)
      expect(page, path).toMatch(/<title>[^<]+<\/title>/)
      expect(page.match(/<main /g), path).toHaveLength(1)
      expect(page, path).not.toMatch(/\s(?:style|on\w+)="|<style|<script(?![^>]* src=")|(?:href|action|src)="(?:\/|https?:)/)
    }
  })

  test('shows hostile addresses as text', async () => {
    const [id = ''] = await idsIn(`messages?sender=${encodeURIComponent('*onerror*')}`)
    for (const path of ['messages', `messages/${id}`, `operations/new?operation=delete&scope=ids&id=${id}`, 'messages?sender=*onerror*']) {
      const page = await textOf(path)
      expect(page, path).not.toContain('<img')
      expect(page, path).not.toContain('<script>pwned')
    }
    expect(await textOf(`messages/${id}`)).toContain('&gt;&lt;img src=x onerror=pwned()&gt;')
  })

  test('shows hostile queries as text', async () => {
    const hostile = encodeURIComponent('"><script>pwned()</script>\u202e\u001b')
    for (const path of [
      `messages?sender=${hostile}`,
      `history?recipient=${hostile}`,
      `destinations?name=${hostile}`,
      `planner?policy=${hostile}`,
      `audit?who=${hostile}`,
    ])
      expect(await textOf(path), path).not.toContain('<script>pwned')
  })

  test('takes patterns with any number of stars', async () => {
    for (const path of ['messages?sender', 'messages?reply', 'history?recipient', 'destinations?name', 'audit?who', 'events?sender'])
      expect([path, (await ask(`${path}=${MANY_STARS}`, 'viewer')).status]).toEqual([path, 200])
    // No type of event matches it.
    expect((await ask(`events?type=${MANY_STARS}`, 'viewer')).status).toBe(422)
  })

  test('leads to the login without a session, with a form of one field', async () => {
    const response = await fetch(`${daemon.url}destinations/a.example`, { redirect: 'manual', headers: { accept: 'text/html' } })
    expect([response.status, response.headers.get('location')]).toEqual([303, '../login?back=destinations%2Fa.example'])
    const login = await (await fetch(`${daemon.url}login`)).text()
    expect(login.match(/<input name="code"/g)).toHaveLength(1)
  })
})

test('a viewer sees no operations, and the server refuses them', async () => {
  const page = await textOf('messages', 'viewer')
  expect(page).not.toContain('Hold…')
  expect(page).toContain('may look, not change')
  expect((await ask('operations/new?operation=hold', 'viewer')).status).toBe(403)
  expect((await post('operations', 'plan=x&key=x&again=&back=', 'viewer')).status).toBe(403)
})

test('an operation is planned, done once though the form is sent twice, and undone', async () => {
  const plan = await textOf('operations/new?operation=hold&scope=filter&sender=news@shop.example&back=messages')
  expect(plan).toContain('Hold 4 messages?')
  const form = new URLSearchParams({ back: 'messages', reason: 'compromised' })
  for (const name of ['plan', 'key', 'again']) form.set(name, hiddenIn(plan, name))
  const done = await post('operations', form.toString())
  expect(done.status).toBe(303)
  const place = done.headers.get('location') ?? ''
  expect((await post('operations', form.toString())).headers.get('location')).toBe(place)
  expect(await textOf(place)).toContain('4 messages were put on hold.')
  expect(await idsIn('messages?queue=hold')).toHaveLength(4)
  expect(await textOf('operations/new?operation=flush&scope=filter&sender=news@shop.example')).toContain('<dd>4 are on hold</dd>')
  const id = /\d+/.exec(place)?.[0] ?? ''
  const undone = await post(`operations/${id}/undo`, '')
  expect([undone.status, undone.headers.get('location')]).toEqual([303, expect.stringMatching(/^\.\.\/\d+$/)])
  expect(await idsIn('messages?queue=hold')).toHaveLength(0)
  expect(await textOf(`operations/${id}`)).toContain('It was undone by')
})

test('no message is changed when none is checked, and a filter that is not valid is a sentence', async () => {
  expect(await textOf('operations/new?operation=delete&scope=ids&sender=news@shop.example')).toContain('No message is checked')
  const response = await ask('messages?older_than=soon')
  expect(response.status).toBe(422)
  expect(await response.text()).toContain('Older than: expected a time such as 30m, 2h or 1d')
  expect(await (await ask('messages?status=4.7')).text()).toContain('Status: expected a code such as 4.7.0, or a pattern such as 4.7.*')
})

test('an unknown condition is refused: without it, other mail is selected than was asked for', async () => {
  for (const path of ['messages?typo=x', 'operations/new?operation=hold&typo=x', 'operations/new?operation=hold&scope=ids&id=x&typo=x']) {
    const response = await ask(path)
    expect([path, response.status]).toEqual([path, 422])
    expect(await response.text()).toContain('typo')
  }
})

test('messages are listed from either end, and a plan leads back to that end', async () => {
  const oldest = await idsIn('messages')
  expect(await idsIn('messages?order=newest')).toEqual(oldest.toReversed())
  const page = await textOf('messages?order=newest&sender=news@shop.example')
  expect(page).toContain('href="./messages?sender=news%40shop.example"')
  expect(hiddenIn(page, 'back')).toBe('messages?sender=news%40shop.example&order=newest')
})

test('the search leads to the message that it finds, or lists several', async () => {
  const ids = await idsIn('messages')
  const search = (text: string, role?: PageRole) => ask(`search?q=${encodeURIComponent(text)}`, role)
  const leads = async (text: string, role?: PageRole) => (await search(text, role)).headers.get('location')
  expect(await leads(ids[0] ?? '')).toBe(`messages/${ids[0]}`)
  expect(await leads('customer2@far.example')).toBe(`messages/${ids[3]}`)
  expect(await leads('script pwned')).toBe(`messages/${ids[0]}`)
  // A viewer without the right to read the content does not search subjects.
  expect(await leads('script pwned', 'viewer')).toBeNull()
  const listed = await (await search('news@shop.example')).text()
  expect([...listed.matchAll(/href="\.\/messages\/(\w+)"/g)].map(([, id]) => id)).toEqual(ids.slice(1).toReversed())
  const none = await (await search('nobody@far.example')).text()
  expect(none).toContain('No message is found.')
  expect(none).not.toContain('fewer than')
  expect(await (await search('請求')).text()).toContain('A text of fewer than 3 characters is found as a whole word only.')
  expect(none).toContain('search?q=*nobody%40far.example*')
  const scanned = wholeWords(await (await search('*ustomer*@far*')).text())
  expect(scanned).toMatch(/Read \d+ % of all addresses/)
  expect(scanned).toContain('customer2@far.example')
})

test('the time zone is chosen once, kept by a cookie, and named on every screen', async () => {
  const [id = ''] = await idsIn('messages')
  const form = await textOf(`zone?back=${encodeURIComponent(`messages/${id}?scale=age`)}`)
  expect(hiddenIn(form, 'back')).toBe(`messages/${id}?scale=age`)
  const answer = await post('zone', new URLSearchParams({ zone: 'Asia/Tokyo', back: `messages/${id}?scale=age` }).toString())
  expect([answer.status, answer.headers.get('location')]).toEqual([303, `./messages/${id}?scale=age`])
  const cookie = answer.headers.get('set-cookie') ?? ''
  expect(cookie).toMatch(/^deferd-zone=Asia\/Tokyo; Max-Age=31536000; Path=\/; HttpOnly; SameSite=Strict$/)
  const headers = { cookie: `${await cookieOf()}; ${cookie.split(';', 1)[0] ?? ''}` }
  for (const path of ['', `messages/${id}`, 'history', 'audit']) {
    const page = await (await ask(path, 'admin', { headers })).text()
    expect(page, path).toMatch(/Times in\s+<a [^>]*>UTC\+9<\/a>/)
    expect(page, path).toContain('data-offset="540"')
  }
  for (const [path, status] of [
    ['messages/4dhRlh0000zzz', 404],
    ['no-such-screen', 404],
  ] as const) {
    const refused = await ask(path, 'admin', { headers })
    const page = (await refused.text()).replaceAll(/<[^>]*>/g, '').replaceAll(/\s+/g, ' ')
    expect([path, refused.status, page]).toEqual([path, status, expect.stringContaining('Times in UTC+9')])
    expect(page).not.toMatch(/openapi|resource/i)
  }
  expect(await textOf('no-such-screen')).toContain('The page has no screen /no-such-screen.')
  const shown = await (await ask(`messages/${id}`, 'admin', { headers })).text()
  const [, at = '', title] = /<time datetime="([^"]+)" title="([^"]+)">/.exec(shown) ?? []
  expect(title).toBe(`${new Date(Date.parse(at) + 9 * 3_600_000).toISOString().slice(0, 19).replace('T', ' ')} UTC+9`)
})

test('a destination of which nothing is recorded any more has a screen with the ways to its history', async () => {
  const answer = await ask('destinations/once.example')
  const page = await answer.text()
  expect([answer.status, page.includes('No mail waits for it.')]).toEqual([404, true])
  expect(page).toContain('history?recipient=*%40once.example')
})

test('a range of times is read and shown in the zone of the page; links have the instants', async () => {
  const cookie = `${await cookieOf()}; deferd-zone=Asia/Tokyo`
  const page = await (
    await ask('messages?arrived_after=2026-11-28T14:00&arrived_before=2026-11-28T05:30:07Z', 'admin', { headers: { cookie } })
  ).text()
  expect(page).toContain('No message matches: arrived from 2026-11-28 14:00:00 UTC+9, arrived before 2026-11-28 14:30:07 UTC+9.')
  expect(page.replaceAll(/\s+/g, ' ')).toMatch(
    /Arrived from \(UTC\+9\)<\/span ?><input name="arrived_after" type="datetime-local" value="2026-11-28T14:00"/,
  )
  expect(page.replaceAll(/\s+/g, ' ')).toMatch(/value="2026-11-28T14:30:07"[^>]* step="1"/)
  expect(page).toContain('deferd queue list --arrived-after 2026-11-28T05:00:00Z --arrived-before 2026-11-28T05:30:07Z')
  const plan = await (await ask('operations/new?operation=hold&arrived_before=2026-11-28T14:00', 'admin', { headers: { cookie } })).text()
  expect(plan).toContain('arrived before 2026-11-28 14:00:00 UTC+9')
  expect(await (await ask('messages?arrived_after=soon')).text()).toContain('Arrived from: expected RFC 3339')
  const reversed = 'messages?arrived_after=2026-11-28T15:00&arrived_before=2026-11-28T14:00'
  expect(await (await ask(reversed, 'admin', { headers: { cookie } })).text()).toContain(
    'Arrived to: expected a time after “Arrived from”, got 2026-11-28 14:00:00 UTC+9.',
  )
  for (const [path, after] of [
    ['audit', 'recorded_after'],
    ['events', 'occurred_after'],
  ] as const) {
    const ranged = await (await ask(`${path}?${after}=2026-11-28T05:00:00Z`, 'admin', { headers: { cookie } })).text()
    expect(ranged.replaceAll(/\s+/g, ' ')).toContain(`name="${after}" type="datetime-local" value="2026-11-28T14:00"`)
    const refused = await ask(`${path}?${after}=soon`)
    expect([refused.status, (await refused.text()).includes('From, to: expected a time')]).toEqual([422, true])
  }
})

test('a zone that no list has is refused, one in a cookie is ignored, and that of the server removes the cookie', async () => {
  expect((await post('zone', 'zone=Mars%2FOlympus&back=')).status).toBe(422)
  for (const name of ['Asia/Kathmandu', 'Asia/Katmandu', 'Europe/Kyiv'])
    expect((await post('zone', new URLSearchParams({ zone: name, back: '' }).toString())).status, name).toBe(303)
  const headers = { cookie: `${await cookieOf()}; deferd-zone=asia/tokyo"><b>` }
  expect(await (await ask('history', 'admin', { headers })).text()).not.toContain('UTC+9')
  const removed = await post('zone', 'zone=&back=//evil.example')
  expect([removed.headers.get('location'), removed.headers.get('set-cookie')]).toEqual(['./', expect.stringContaining('Max-Age=0')])
})

test('a screen leads back only to places of the page', () => {
  expect(placeOf('messages?sender=a%40b')).toBe('messages?sender=a%40b')
  for (const back of ['//evil.example', 'https://evil.example', 'javascript:x', '../../x', 'messages/../../x', 'messages?a b', null])
    expect(placeOf(back)).toBe('messages')
})
