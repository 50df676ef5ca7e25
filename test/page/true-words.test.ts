/** Words of the screens: a figure has its unit, mail in delivery is not mail without an attempt, and a record names what it is about. */
import { Now } from '../../src/queries/now.ts'
import type { QueueView } from '../../src/queries/queue-view.ts'
import { wordsIn } from '../support/page-requests.ts'
import { afterEach, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { Problem, problemOf } from '../../src/http/problem-details.ts'
import type { DestinationDetailsJson } from '../../src/resources/destination-json.ts'
import { quotaRequestOf } from '../../src/mail/message-times.ts'
import { MINUTE, SECOND } from '../../src/system/clock.ts'
import { ApiWorld } from '../support/api-world.ts'
import { goldenReport } from '../support/domain-reports.ts'
import { ADMIN, PageScreens } from '../support/page-screens.ts'

let world: ApiWorld
afterEach(() => world.close())

/** The text of a screen without its markup. */
const words = async (path: string, requester = ADMIN): Promise<string> =>
  (await new PageScreens(world).text(path, requester))
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll(/\s+/g, ' ')

test('the first attempt of mail in delivery has begun: its cause, its destination and the queue say so', async () => {
  world = await ApiWorld.open('memory')
  await world.queue.accept(['ann@slow.example'])
  await world.queue.advance(SECOND)
  expect((await world.api.get('/destinations/slow.example')).json).toMatchObject({ in_flight: 1 })
  expect(await words('causes')).toContain('not tried yet, or in the first attempt 1 slow.example')
  expect(await words('destinations/slow.example')).toContain('1 delivery runs; no other mail waits.')
  expect(await words('')).toContain('1 recipient is in delivery or was not tried yet; none is deferred.')
})

test('without fair shares, the shares of waiting mail are not counted, and it is not said that there is none', async () => {
  world = await ApiWorld.open('memory')
  await world.queue.accept(['ann@a.example'])
  await world.queue.advance(MINUTE)
  const screen = await words('shares')
  expect(screen).toContain('Deliveries are not shared fairly; set fair_share = "yes" for that.')
  expect(screen).not.toContain('No share has mail.')
  await world.close()
  const tables = { fair_share: 'yes' }
  world = await ApiWorld.open('memory', configFrom(tables, 'relay.example'), tables)
  expect(await words('shares')).toContain('No share has mail.')
})

test('a client that sees some destinations is told that the figures of Now are of all mail', async () => {
  world = await ApiWorld.open('memory')
  await world.queue.accept(['ann@a.example'])
  await world.queue.advance(MINUTE)
  const limited = await words('', { ...ADMIN, destinations: '*.b.example' })
  expect(limited).toContain('1 recipient waits')
  expect(limited).not.toMatch(/No destination has more than|has (?:it|all of them)/)
  expect(limited).toContain('The figures are of all mail of the relay.')
  expect(limited).toContain('those that you may see: *.b.example')
  expect(limited).toContain('No destination that you may see has waiting mail.')
  const all = await words('')
  expect(all).toContain('a.example')
  expect(all).not.toContain('you may see')
})

test('Trends of a client with limited destinations has all charts but that of causes, and one daemon has no choice of nodes', async () => {
  const limited = await words('trends?range=1h', { ...ADMIN, destinations: '*.b.example' })
  expect(limited).toContain('Delay of delivered mail')
  expect(limited).not.toContain('Deferred by cause')
  const all = await words('trends?range=1h')
  expect(all).toContain('Deferred by cause')
  expect(all).toMatch(/By whole queue destination provider sender domain(?! node)/)
})

test('no probe is due at a dead destination without mail: its next mail is one', async () => {
  world = await ApiWorld.open('memory')
  const { store, clock } = world.queue
  const siteStatus = { status: '4.4.1', reason: 'connect to mx.dead.example[192.0.2.1]:25: Connection refused', stage: 'connect' } as const
  const dead = { deadUntil: clock.now(), probeInterval: MINUTE, suspension: null, siteStatus }
  await store.saveDestination({ ...dead, name: 'dead.example' })
  await world.queue.advance(SECOND)
  const screen = await words('destinations/dead.example')
  expect(screen).toContain('Dead: its servers do not accept connections or mail. The next mail for it is a probe.')
  for (const one of ['destinations/dead.example', 'destinations']) expect(await words(one)).not.toContain('probe due')
})

test('a destination whose servers cannot be looked up says nothing about them', async () => {
  world = await ApiWorld.open('memory')
  const { store, clock } = world.queue
  const siteStatus = { status: '4.4.3', reason: 'Name service error for name=lost.example type=MX: ESERVFAIL', stage: 'dns' } as const
  const dead = { deadUntil: clock.now(), probeInterval: MINUTE, suspension: null, siteStatus }
  await store.saveDestination({ ...dead, name: 'lost.example' })
  await world.queue.advance(SECOND)
  const screen = await words('destinations/lost.example')
  expect(screen).toContain('Dead: the look-up of its servers fails. The next mail for it is a probe.')
  expect(screen).not.toMatch(/does not answer|not accept connections/)
})

test('a limit without room, and the shares of a full queue, accept no mail, also before any was refused', async () => {
  const limits = { queue_message_limit: 3, queue_share_message_limit: 2, share_key: ['sender_domain'] } as const
  world = await ApiWorld.open('memory', undefined, limits)
  await world.queue.relay.start()
  const submit = (domain: string) =>
    world.api.post('/messages', { from: `app@${domain}`, to: 'ann@a.example.org', text: 'hi' }, { as: 'admin' })
  for (let n = 0; n < 2; n++) expect((await submit('us.example')).status).toBe(202)
  const ofShare = await words('')
  expect(ofShare).toContain('2 of 2 messages of the share us.example in the queue: mail is refused')
  expect(await new PageScreens(world).text('')).toMatch(
    /2 of 2 messages of the share us\.example[^]*?href="\.\/#limits"[^]*<section id="limits">/,
  )
  expect(ofShare).toMatch(/whole queue messages 2 of 3 accepted us\.example messages 2 of 2 refused deferd/)
  expect((await submit('them.example')).status).toBe(202)
  await world.queue.advance(2 * SECOND)
  const full = await words('')
  expect(full).toContain('New mail is refused, because the queue is at its limit.')
  expect(full).toMatch(
    /whole queue messages 3 of 3 refused us\.example messages 2 of 2 refused them\.example messages 1 of 2 refused with the whole queue/,
  )
  expect(full).toContain('3 of 3 messages in the queue: mail is refused, and by 1 other limit')
})

test('while all nodes drain, no limit with room says that mail is accepted', async () => {
  world = await ApiWorld.open('memory', undefined, { queue_message_limit: 3 })
  await world.queue.relay.start()
  const nodes = () => ({ silent: () => [], drained: () => ['n1', 'n2'], unanswered: () => [], nodes: { lost: async () => [] } })
  const shared = Object.create(world.api.api.view, { nodes: { value: nodes } }) as QueueView
  const now = new Now(shared)
  expect(wordsIn(await new PageScreens(world, shared, now).text(''))).toMatch(/whole queue messages 0 of 3 refused ?: no node is active/)
  now.close()
})

test('a notice that waits for the other recipients of its message needs no attention', async () => {
  world = await ApiWorld.open('memory')
  const { queue } = world
  await queue.relay.start()
  await queue.accept(['ann@unknown.example', 'bob@slow.example'])
  await queue.advance(10 * SECOND)
  expect(await queue.store.messagesWithNoticesDue(0, 9)).toHaveLength(1)
  expect((await queue.relay.status.attention(queue.reader)).noticesDue).toEqual({ count: 0, isAtLeast: false })
})

test('failed schedules lead to their audit records, and notices that are due to the failures to make one', async () => {
  world = await ApiWorld.open('memory')
  const { view, now: counted } = world.api.api
  const none = { count: 1, at_least: false, within: null, text: null, since: null } as const
  const attention = [
    { ...none, kind: 'schedule-failed', text: 'nightly: no space left', since: 0 },
    { ...none, kind: 'notices-due' },
  ] as const
  const within: typeof counted.within = async (...asked) => {
    const known = await counted.within(...asked)
    return known === undefined ? undefined : { ...known, attention }
  }
  const shown = new Proxy(counted, { get: (target, name): unknown => (name === 'within' ? within : Reflect.get(target, name)) })
  const now = await new PageScreens(world, view, shown).text('')
  expect(now).toMatch(
    /1 schedule failed, the last at (?:\d{4}-\d\d-\d\d )?\d\d:\d\d: nightly: no space left[^]*?href="\.\/audit\?action=schedule"/,
  )
  expect(now).toMatch(/1 notice not sent yet[^]*?href="\.\/log\?text=[^"]*cannot[^"]*make[^"]*a[^"]*notice/)
})

test('a search for a reply says that the failure of a dead destination is not searched', async () => {
  world = await ApiWorld.open('memory')
  await world.queue.accept(['ann@a.example'])
  const hint = 'Mail that waits for a dead destination may have another reply, or none: find it by Destination.'
  expect(await words('messages?reply=refused')).toContain(hint)
  expect(await words('messages')).not.toContain(hint)
})

test('a range of Trends that is refused names the field of the form', async () => {
  world = await ApiWorld.open('memory')
  const refused = await words('trends?from=2127-01-01T00:00')
  expect(refused).toContain('From: expected a time before the end of the range, and before now.')
  expect(refused).not.toContain('invalid request')
})

test('the audit log has the reason for which an action failed', async () => {
  world = await ApiWorld.open('memory')
  const record = { at: 0, who: 'schedule nightly', action: 'schedule', arguments: 'nightly', changed: 0 }
  await world.queue.store.records.audit.add({ ...record, error: 'no space left on device' })
  expect(await words('audit')).toMatch(/failed nothing failed: no space left on device nightly/)
})

const SECRET = `whsec_${Buffer.alloc(32, 'example').toString('base64')}`

const GOOGLE = {
  mx: ['.google.example'],
  rule: [{ name: 'busy', reply: '4\\.2\\.1', after: '1 in 1h', action: 'rate 6/min', for: '2h' }],
}

test('the screen of a provider counts the destinations with mail, and says what a rule does and until when', async () => {
  const tables = { provider: { google: GOOGLE } }
  world = await ApiWorld.open('memory', configFrom(tables, 'relay.example'), tables, { providerOf: () => 'google' })
  for (const name of ['g1.example', 'g2.example', 'ok.example']) await world.queue.accept([`ann@${name}`])
  await world.queue.advance(MINUTE)
  const screen = await words('providers/google')
  expect(screen).toContain('2 recipients wait for 2 of 3 known destinations.')
  expect(screen).toContain('rule busy rate 6/min, ends in 1h 59m : 450 4.2.1 busy, try later')
  const list = await words('providers')
  expect(list).toContain('g1.example , g2.example , ok.example')
  expect(list).not.toContain('known')
  expect(list).toContain('busy: rate 6/min, ends in 1h 59m : 450 4.2.1 busy, try later')
})

test('a provider with few destinations has their names, also without mail, and one with more a link to those with mail', async () => {
  const tables = { provider: { google: { mx: ['.google.example'] } } }
  world = await ApiWorld.open('memory', configFrom(tables, 'relay.example'), tables, { providerOf: () => 'google' })
  expect(await words('providers')).toContain('none known yet')
  await world.queue.accept(['ann@ok.example'])
  await world.queue.advance(5 * MINUTE)
  // A row that is renewed in its place has the columns of its table, whatever came meanwhile.
  expect(await words('providers')).toContain('Reply rules that apply')
  expect(await words('destinations')).toMatch(/Destination .* Last reply ok\.example/)
  expect(await words('providers')).toMatch(/google open 0 0 – ok\.example/)
  expect(await words('providers/google')).toContain('known destinations ok.example')
  for (const name of ['g1.example', 'g2.example', 'g3.example']) await world.queue.accept([`ann@${name}`])
  await world.queue.advance(MINUTE)
  expect(await words('providers')).toContain('4 known , most mail: g1.example , g2.example , g3.example')
  const [link = ''] = /[^"]*providers\/google#\w+/.exec(await new PageScreens(world).text('providers')) ?? []
  expect(await new PageScreens(world).text('providers/google')).toContain(
    `<section id="${link.split('#')[1] ?? ''}"><div class="heading"><h2>Where it waits`,
  )
  expect(await words('providers/google')).not.toContain('known destinations ok')
})

test('a provider of destinations that deliver nothing says so', async () => {
  const tables = { provider: { google: { mx: ['.google.example'] } } }
  world = await ApiWorld.open('memory', configFrom(tables, 'relay.example'), tables, { providerOf: () => 'google' })
  await world.queue.accept(['ann@ok.example'])
  await world.queue.advance(5 * MINUTE)
  expect(await words('providers/google')).not.toContain('Nothing was delivered')
  for (let n = 0; n < 20; n++) await world.queue.accept([`ann${n}@g1.example`])
  await world.queue.advance(12 * 60 * MINUTE)
  expect((await world.api.get('/destinations/g1.example')).json).toMatchObject({ refuses_all: true })
  expect(await words('providers/google')).toContain('for 1 of 2 known destinations. Nothing was delivered in the last attempts there.')
})

test('a suspension ends in the same words on all screens, and the chart of a split says what it draws', async () => {
  world = await ApiWorld.open('memory')
  await world.queue.accept(['ann@a.example'])
  await world.queue.advance(MINUTE)
  await world.api.post('/destinations/a.example/suspend', { for: '6h' }, { as: 'admin' })
  await world.queue.advance(10 * SECOND)
  for (const screen of ['', 'destinations']) expect(await words(screen)).toContain('resumes in 5h 59m')
  expect(await words('trends?range=1h&split_by=destination')).toContain('Deferred by destination')
})

test('figures of queues and of events have their unit', async () => {
  const to = 'https://hooks.example/'
  world = await ApiWorld.open('memory')
  await world.api.post('/subscriptions', { name: 'app', to, types: ['message.*'], secret: SECRET }, { as: 'admin' })
  await world.queue.accept(['ann@a.example'])
  await world.queue.advance(MINUTE)
  await world.api.post('/destinations/a.example/suspend', { reason: 'asked to' }, { as: 'admin' })
  await world.queue.advance(10 * SECOND)
  const now = await words('')
  expect(now).toContain('Queues messages incoming 0')
  expect(now).toContain('suspended by token:admin (127.0.0.1): asked to 1 recipient waits Resume…')
  expect(now).toContain('Destination State Recipients In flight')
  expect(await words('destinations')).toContain('Destination State Recipients In flight')
  expect(await words('operations/new?operation=flush&destination=a.example')).toContain(
    'suspended ones get no mail until they are resumed.',
  )
  expect(await words('webhooks')).toContain('Name State Events behind Events parked Events lost')
  expect(await words('webhooks/app')).toMatch(/events behind \d/)
})

test('an event of a provider names it', async () => {
  const tables = { provider: { google: { mx: ['.google.example'] } }, events: { all: { to: '' } } }
  world = await ApiWorld.open('memory', configFrom(tables, 'relay.example'), tables, { providerOf: () => 'google' })
  await world.api.post('/providers/google/suspend', { reason: 'IP reputation' }, { as: 'admin' })
  await world.queue.advance(SECOND)
  expect(await new PageScreens(world).text('events')).toMatch(/provider\.suspended<\/th>.*?<a href="\.\.?\/providers\/google">google<\/a>/s)
})

test('a line of the log without the reply of a server begins with what happened', async () => {
  world = await ApiWorld.open('memory')
  const text = 'destination a.example is dead until 2026-01-01T00:10:00Z: connect to mx.a.example[192.0.2.1]:25: Connection refused'
  world.queue.relay.status.log.listen({ kind: 'note', level: 'warning', text }, world.queue.clock.wall.now())
  expect(await new PageScreens(world).text('log')).toContain(`<span class="said">${text}</span>`)
})

test('a domain that was checked for the mail of other senders says so', async () => {
  world = await ApiWorld.open('memory', configFrom({ myorigin: 'us.example' }, 'relay.example'))
  world.answer = async () => goldenReport('good.example')
  await world.api.post('/domain-checks', { domain: 'good.example' }, { as: 'admin' })
  const screen = await new PageScreens(world).text('deliverability/good.example')
  expect(screen).toContain('Not checked for mail of good.example in the last 7 days.')
  expect(screen).toMatch(
    /Checked <time[^>]*>[^<]*<\/time> for\s+<a href="\.\.\/deliverability\/good\.example\?from=us\.example">mail of us\.example<\/a>/,
  )
})

test('the chart of a window ends at the present window, which began anew after a time without deliveries', async () => {
  world = await ApiWorld.open('memory')
  for (let n = 0; n < 40; n++) await world.queue.accept([`u${n}@ok.example`])
  await world.queue.advance(10 * MINUTE)
  await world.queue.accept(['ann@ok.example'])
  await world.queue.advance(SECOND)
  const found = (await world.api.get('/destinations/ok.example')).json as unknown as Pick<DestinationDetailsJson, 'window' | 'last_windows'>
  const { window, last_windows: windows } = found
  expect(windows.length).toBeGreaterThan(1)
  expect(window).toBeLessThan(windows.at(-1) ?? 0)
  expect(await words('destinations/ok.example')).toContain(`Window ${windows[0]} → ${window}, limit 20`)
})

test('a deleted message says until when it can be restored, by trash_lifetime', async () => {
  const tables = { trash_lifetime: '3h' }
  world = await ApiWorld.open('memory', configFrom(tables, 'relay.example'), tables)
  const id = await world.queue.accept(['ann@a.example'])
  await world.queue.advance(MINUTE)
  await world.api.post('/operations', { operation: 'delete', selection: { kind: 'ids', ids: [id] } }, { as: 'operator' })
  const { restore_until: until } = (await world.api.get(`/messages/${id}`)).json
  expect(until).toBe((world.queue.clock.wall.now() + 180 * MINUTE) / SECOND)
  const time = new Date(until * SECOND).toISOString().slice(11, 16)
  expect(await words(`messages/${id}`)).toContain(`It is in the trash, and can be restored until ${time}.`)
})

test('the rule of a message with a named time names no time of another zone than that of the page', async () => {
  world = await ApiWorld.open('memory')
  const id = await world.queue.accept(['ann@a.example'])
  await world.queue.advance(MINUTE)
  const order = { operation: 'reschedule', selection: { kind: 'ids', ids: [id] }, not_before: '2h' }
  await world.api.post('/operations', order, { as: 'operator' })
  expect(await words(`messages/${id}`)).toContain(
    'by rule scheduled by an operator, who named an interval after the order (queue reschedule)',
  )
})

test('the audit log has the unit of what was changed', async () => {
  world = await ApiWorld.open('memory')
  const ids = [await world.queue.accept(['ann@a.example']), await world.queue.accept(['bob@a.example'])]
  await world.queue.advance(MINUTE)
  await world.api.post('/operations', { operation: 'hold', selection: { kind: 'ids', ids } }, { as: 'operator' })
  await world.api.post('/destinations/a.example/suspend', {}, { as: 'operator' })
  await world.queue.advance(SECOND)
  const audit = await words('audit')
  expect(audit).toMatch(/hold done 2 messages/)
  expect(audit).toMatch(/suspend done 1 destination/)
})

test('actions are named in the words of their commands, which the filter takes, whatever joins them in the record', async () => {
  world = await ApiWorld.open('memory')
  const as = { as: 'admin' } as const
  await world.api.post('/tokens', { name: 'grafana', role: 'viewer' }, as)
  await world.api.post('/suppressions', { address: 'bob@far.example', scope: '*', reason: 'manual' }, as)
  const { records } = (await world.api.get('/audit', as)).json as { readonly records: readonly { readonly action: string }[] }
  expect(records.map(({ action }) => action)).toEqual(['suppression-add', 'token add'])
  const actionsIn = async (query: string) =>
    [...(await new PageScreens(world).text(`audit${query}`)).matchAll(/operations\/\d+\?back=audit">([^<]*)</g)].map(([, action]) => action)
  expect(await actionsIn('')).toEqual(['suppression add', 'token add'])
  for (const asked of ['suppression add', 'suppression-add', 'suppress*'])
    expect([asked, await actionsIn(`?action=${encodeURIComponent(asked)}`)]).toEqual([asked, ['suppression add']])
  for (const asked of ['token add', 'token-add']) expect(await actionsIn(`?action=${encodeURIComponent(asked)}`)).toEqual(['token add'])
  expect(await words('operations/2')).toContain('Suppression add')
})

test('a list names the quota that holds a message, as the screen of the message does', async () => {
  world = await ApiWorld.open('sqlite')
  const notBefore = world.queue.clock.now() + 30 * MINUTE
  const holdRequest = quotaRequestOf({ quota: 'app', limit: '3/1h', recipients: 1, sender: 'app@us.example' })
  const id = await world.queue.accept(['ann@a.example'], { times: { notBefore, scheduled: true, holdRequest } })
  expect(await words('messages')).toMatch(/a\.example quota app, 3\/1h, is used up/)
  expect(await words(`messages/${id}`)).toContain('(scheduled: quota app, 3/1h, is used up until then)')
  const entry = { queue_id: id, recipients: [{ delay_reason: 'quota app, 3/1h, is used up' }] }
  expect((await world.api.get('/messages')).json).toMatchObject({ messages: [entry] })
  expect(JSON.parse((await world.api.get('/messages?format=ndjson')).text)).toMatchObject(entry)
})

test('the history says by what it is ordered, and which time a row has', async () => {
  world = await ApiWorld.open('memory')
  expect(await words('history')).toContain('in the order in which that was recorded, the last first. “Left” is the time of the outcome')
})

test('mail from the null sender is given up, and is returned when it would be tried once it was made to expire', async () => {
  world = await ApiWorld.open('memory')
  const id = await world.queue.accept(['ann@far.example'], { sender: '' })
  const returned = await world.queue.accept(['bob@far.example'])
  await world.queue.advance(MINUTE)
  const ids = { kind: 'ids', ids: [id, returned] }
  expect(await words(`messages/${id}`)).not.toContain('returned to the sender')
  expect(await words(`messages/${id}`)).toMatch(/without a delivery it is given up at .* given up in /)
  expect(await words(`messages/${returned}`)).toMatch(/without a delivery it is returned to the sender at .* returned to the sender in /)
  const plan = await words('operations/new?operation=expire&scope=all')
  expect(plan).toContain('Flush makes deferred mail due now. Mail on hold waits for its release')
  expect(plan).toContain('get a notice, except the null sender and those that asked for none')
  await world.api.post('/operations', { operation: 'expire', selection: ids }, { as: 'operator' })
  const expiring = await words(`messages/${id}`)
  expect(expiring).toMatch(/An operator has made it expire: it is given up in place of its next attempt at /)
  expect(expiring).toContain('forced to expire by an operator: given up without another attempt')
  expect(expiring).not.toContain('next attempt in')
})

test('the times of a problem are of the zone of the page, and in UTC for programs', async () => {
  const tables = { returned_content_retention: '1d' }
  world = await ApiWorld.open('memory', configFrom(tables, 'relay.example'), tables)
  const id = await world.queue.accept(['ann@unknown.example'])
  await world.queue.advance(MINUTE)
  const { status, json } = await world.api.get(`/messages/${id}/content`, { as: 'reader' })
  const [, until = ''] = /It is stored until (2026-01-02T00:00:00\.\d{3}Z), so that it can be sent again$/.exec(json.detail) ?? []
  expect([status, json.type, until]).toEqual([410, '/problems/content-kept', expect.stringContaining('2026')])
  const screens = new PageScreens(world)
  const shown = async (path: string, zone: string): Promise<string> => {
    const problem = await screens.screen(path).catch(problemOf)
    if (!(problem instanceof Problem)) throw new Error(`${path} is shown`)
    const headers = { cookie: `deferd-zone=${zone}` }
    const answer = screens.page.refusal(problem, { path: '/screen', screen: null, headers, requester: ADMIN })
    return answer.kind === 'text' ? wordsIn(answer.text) : ''
  }
  const content = `/messages/${id}/content`
  const kept = 'It is stored until 2026-01-01 19:00:00 UTC−5, so that it can be sent again.'
  expect(await shown(content, 'America/New_York')).toContain(kept)
  expect(await shown(content, '')).toContain('It is stored until 2026-01-02 00:00:00 UTC, so that it can be sent again.')
  const range = 'arrived_after=2026-01-01T22:00:00Z&arrived_before=2026-01-01T20:00:00Z'
  const reversed = await shown(`/operations/new?operation=hold&scope=filter&${range}`, 'America/New_York')
  expect(reversed).toContain('got 2026-01-01 15:00:00 UTC−5.')
})
