/** The screens of the suppression list over HTTP, without scripts: the list and its filter, add, remove, resume, and who may. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import { PageDaemon } from '../support/page-daemon.ts'
import { pageRequests, wordsIn } from '../support/page-requests.ts'

let daemon: PageDaemon
const { ask, textOf, post } = pageRequests(() => daemon, 'operator')

const STOPPED = 'stopped.example'

beforeAll(async () => {
  daemon = await PageDaemon.start({ suppression: 'yes' }, async (queueDirectory) => {
    const { store, close } = await openStore(queueDirectory, { threads: false, create: true })
    await store.records.suppressionStops.stop({ scope: STOPPED, at: Date.now() })
    await close()
  })
})
afterAll(() => daemon.close())

const ENTRY = { scope: 'us.example', address: 'Bob@FAR.example', reason: 'complaint', text: 'he complained', expires: '30d' }
const HOSTILE = `"'><img/src=x/onerror=alert(1)>"@far.example`

test('an entry is added, found by each condition and removed, each with a record', async () => {
  expect(wordsIn(await textOf('suppressions'))).toContain('No address is on the suppression list.')
  expect(wordsIn(await textOf('new-suppression'))).toContain('deferd suppression add ADDRESS --reason manual')
  const added = await post('new-suppression', ENTRY)
  expect([added.status, added.headers.get('location')]).toEqual([303, './suppressions'])
  await post('new-suppression', { ...ENTRY, scope: '*', address: '@gone.example', reason: 'manual', text: '', expires: '' })
  for (const [query, hasBob, hasGone] of [
    ['', true, true],
    ['?address=Bob%40far.example', true, false],
    ['?scope=*', false, true],
    ['?reason=complaint', true, false],
    ['?since=1h', true, true],
    ['?destination=far.example', false, false],
  ] as const) {
    const words = wordsIn(await textOf(`suppressions${query}`))
    expect([
      query,
      words.includes('Bob@far.example us.example complaint he complained'),
      words.includes('@gone.example all manual'),
    ]).toEqual([query, hasBob, hasGone])
  }
  expect(wordsIn(await textOf('suppressions?reason=complaint'))).toContain('deferd suppression list --reason complaint')
  const place = 'suppressions/remove?scope=us.example&address=Bob%40far.example'
  expect((await textOf('suppressions')).replaceAll('&amp;', '&')).toContain(`href="./${place}"`)
  expect(wordsIn(await textOf(place))).toMatch(
    /Remove Bob@far\.example\? .*undo not possible .*deferd suppression remove Bob@far\.example --scope us\.example/,
  )
  const removed = await post('suppressions/remove', { scope: 'us.example', address: 'Bob@far.example' })
  expect([removed.status, removed.headers.get('location')]).toEqual([303, '../suppressions'])
  expect((await ask(place)).status).toBe(404)
  expect(wordsIn(await textOf('suppressions'))).not.toContain('Bob@far.example')
  const audit = wordsIn(await textOf('audit'))
  for (const action of ['suppression add', 'suppression remove']) expect(audit).toContain(action)
  expect(audit).toMatch(/Bob@far\.example --scope=us\.example --reason=complaint .*--text=.*he complained.* --for=30d/)
})

test('an entry that is refused keeps what was filled in', async () => {
  const refused: readonly (readonly [Partial<typeof ENTRY>, string])[] = [
    [{ address: '"><img>' }, 'Address: expected an address, or @domain'],
    [{ scope: 'a b' }, 'Sender domain: expected * or a sender domain, got &quot;a b&quot;'],
    [{ reason: 'bounce' }, 'Reason: expected'],
    [{ expires: 'soon' }, 'Ends after: expected a time above 0, such as 30m, 2h or 1d, got &quot;soon&quot;'],
    [{ expires: '99999999d' }, 'Ends after: expected at most 92592592d, got &quot;99999999d&quot;'],
  ]
  for (const [fields, problem] of refused) {
    const answer = await post('new-suppression', { ...ENTRY, text: '"><img>', ...fields })
    const page = await answer.text()
    expect([answer.status, wordsIn(page)]).toEqual([422, expect.stringContaining(problem)])
    expect(page).toContain('value="&quot;&gt;&lt;img&gt;"')
    expect(page).not.toContain('<img')
  }
  for (const [query, problem] of [
    ['?address=bob', 'Address: expected an address'],
    ['?reason=none', 'Reason: expected'],
    ['?since=soon', 'Listed within: expected'],
    ['?scope=a%20b', 'Sender domain: expected'],
  ] as const) {
    const answer = await ask(`suppressions${query}`)
    const words = wordsIn(await answer.text())
    expect([query, answer.status, words]).toEqual([query, 422, expect.stringContaining(problem)])
    expect(words).not.toContain('No entry matches')
  }
})

test('a hostile address is text on each screen, and is removed', async () => {
  await post('new-suppression', { ...ENTRY, address: HOSTILE, text: '<script>x</script>' })
  const list = await textOf('suppressions')
  const [, place = ''] = /href="\.\/(suppressions\/remove\?[^"]*img[^"]*)"/.exec(list) ?? []
  const question = await textOf(place.replaceAll('&amp;', '&'))
  for (const page of [list, question]) {
    expect(page).not.toMatch(/<img|<script>/)
    expect(wordsIn(page)).toContain('&lt;script&gt;x')
  }
  await post('suppressions/remove', { scope: ENTRY.scope, address: HOSTILE })
  expect(await textOf('suppressions')).not.toContain('onerror')
})

test('pages of 50 entries follow each other', async () => {
  const addresses = Array.from({ length: 51 }, (_, n) => `user${String(n).padStart(2, '0')}@pages.example`)
  const headers = { 'content-type': 'application/json', origin: daemon.url.slice(0, -1) }
  const body = JSON.stringify({ text: addresses.join('\n'), scope: 'pages.example' })
  await ask('api/v1/suppressions/import', 'operator', { method: 'POST', headers, body })
  const first = await textOf('suppressions?scope=pages.example')
  const [, next = ''] = /href="\.\/(suppressions\?[^"]*)" rel="next"/.exec(first) ?? []
  expect(wordsIn(first)).not.toContain('user50')
  const second = await textOf(next.replaceAll('&amp;', '&'))
  expect(wordsIn(second)).toContain('user50@pages.example')
  expect(wordsIn(second)).not.toContain('user49')
  expect((await ask('suppressions?after=nonsense')).status).toBe(400)
})

test('stopped listings go on after a question, once', async () => {
  expect(wordsIn(await textOf('suppressions'))).toContain(`No more addresses are listed for ${STOPPED}`)
  expect(wordsIn(await textOf(`suppressions/resume?scope=${STOPPED}`))).toContain(`deferd suppression resume ${STOPPED}`)
  const resumed = await post('suppressions/resume', { scope: STOPPED })
  expect([resumed.status, resumed.headers.get('location')]).toEqual([303, '../suppressions'])
  expect(wordsIn(await textOf('suppressions'))).not.toContain('No more addresses')
  expect((await post('suppressions/resume', { scope: STOPPED })).status).toBe(404)
})

test('a viewer looks, and changes nothing', async () => {
  await post('new-suppression', ENTRY)
  const page = await textOf('suppressions?reason=complaint', 'viewer')
  expect(wordsIn(page)).toContain('Bob@far.example')
  expect(wordsIn(page)).not.toMatch(/Add…|Remove…|Resume…/)
  for (const path of ['new-suppression', 'suppressions/remove?scope=us.example&address=Bob%40far.example', 'suppressions/resume?scope=x'])
    expect([path, (await ask(path, 'viewer')).status]).toEqual([path, 403])
  for (const [path, fields] of [
    ['new-suppression', ENTRY],
    ['suppressions/remove', { scope: 'us.example', address: 'Bob@far.example' }],
    ['suppressions/resume', { scope: 'x' }],
  ] as const)
    expect([path, (await post(path, fields, 'viewer')).status]).toEqual([path, 403])
})
